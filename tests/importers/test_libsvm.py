"""LIBSVM model files that were made to do harm: each is refused in one line. tests/ship/test_libsvm.py reads good ones."""

import random

import numpy as np
import pytest

from slimsvm.files.models import import_libsvm, load, read_libsvm

GOOD = (
    "svm_type c_svc\nkernel_type polynomial\ndegree 3\ngamma 0.5\ncoef0 0.25\nnr_class 3\ntotal_sv 3\nrho 0.25 1 -1\n"
    "label 1 -1 4\nnr_sv 1 1 1\nSV\n1 0.5 1:1 3:1\n-1 2 2:2\n-0.5 1 1:0.5 2:1 3:4\n"
)
CHANGES = {
    "counts that overflow": ("nr_sv 1 1 1", "nr_sv 9223372036854775807 9223372036854775807 5", "nr_sv"),
    "negative counts": ("nr_sv 1 1 1", "nr_sv -1 3 1", "nr_sv"),
    "count beyond int64": ("nr_sv 1 1 1", "nr_sv 99999999999999999999 1 1", "nr_sv"),
    "endless degree": ("degree 3", "degree 4611686018427387904", "degree"),
    "degree of nothing": ("degree 3", "degree", "degree"),
    "gamma of nan": ("gamma 0.5", "gamma nan", "gamma"),
    "gamma of 0": ("gamma 0.5", "gamma 0", "gamma"),
    "gamma of nothing": ("gamma 0.5", "gamma", "gamma"),
    "infinite coef0": ("coef0 0.25", "coef0 inf", "coef0"),
    "infinite rho": ("rho 0.25", "rho inf", "rho"),
    "coefficient of nan": ("1 0.5 1:1", "nan 0.5 1:1", "coefficients"),
    "coefficient with an underscore": ("1 0.5 1:1", "1_1 0.5 1:1", "coefficients"),
    "coefficients too few": ("-1 2 2:2", "2", "coefficients"),
    "value of nan": ("3:1", "3:nan", "3:nan"),
    "value with an underscore": ("3:1", "3:1_1", "3:1_1"),
    "infinite value": ("3:1", "3:1e400", "3:1e400"),
    "feature beyond 32 bits": ("3:1", f"{10**30}:1", "features from 1 to"),
    "feature twice": ("1:1 3:1", "1:1 1:1", "ascending"),
    "features descending": ("1:1 3:1", "3:1 1:1", "ascending"),
    "one label": ("label 1 -1 4", "label 1", "label"),
    "labels twice": ("label 1 -1 4", "label 1 1 4", "label"),
    "label beyond int64": ("label 1 -1 4", f"label 1 {10**30} 4", "label"),
    "no points": ("SV\n", "", "no line SV"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_file_is_refused(name, tmp_path):
    old, new, words = CHANGES[name]
    assert old in GOOD
    (tmp_path / "m").write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match="as a LIBSVM model") as caught:
        load(tmp_path / "m")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_many_classes_do_not_take_memory_that_the_file_has_no_numbers_for(tmp_path):
    k = 1000
    header = f"svm_type c_svc\nkernel_type linear\nrho {'0 ' * (k * (k - 1) // 2)}\nlabel {' '.join(map(str, range(k)))}\n"
    (tmp_path / "m").write_text(f"{header}nr_sv 1 {'0 ' * (k - 1)}\nSV\n{'0 ' * (k - 1)}1:1\n")
    with pytest.raises(ValueError, match="2 GiB"):
        load(tmp_path / "m")


def test_an_import_is_a_function_and_its_classes(tmp_path):
    (tmp_path / "m").write_text(GOOD)
    imported = import_libsvm(tmp_path / "m", 7)
    assert imported.classes.tolist() == [-1, 1, 4]
    assert imported.model.points.shape == (3, 7)
    assert read_libsvm(tmp_path / "m").n_features_in_ == 3


WORDS = ["", "nan", "inf", "-1", "0", "1_1", "x", "9223372036854775807", "300000000:1", "1:nan", "0:1", "1:2:3", "1e400"]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_contents_raise_value_error_or_nothing(seed, tmp_path):
    rng = random.Random(seed)
    for _ in range(300):
        lines = GOOD.split("\n")
        for _ in range(rng.randint(1, 3)):
            words = lines[(place := rng.randrange(len(lines)))].split(" ")
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            lines[place] = " ".join(words)
        (tmp_path / "m").write_text("\n".join(lines))
        try:
            model = read_libsvm(tmp_path / "m")
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert np.isfinite(model.model_.coef).all()
