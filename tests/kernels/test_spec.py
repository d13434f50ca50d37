"""What exporters know of kernels agrees with the kernels themselves."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from slimsvm.kernels import KERNELS, InnerKernel, Kernel
from slimsvm.kernels.spec import MAX_DEGREE, SPECS, check_parameters, spec_of


def test_every_kernel_of_two_rows_has_a_spec():
    assert set(SPECS) == set(KERNELS) - {"precomputed"}
    assert len({spec.form for spec in SPECS.values()}) == len(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_that_of_its_kernel(name):
    kind, spec = KERNELS[name], SPECS[name]
    assert {parameter.name for parameter in spec.parameters} == {field.name for field in fields(kind)}
    assert spec.total.shift_invariant == kind.translation_invariant
    assert not spec.total.inner or issubclass(kind, InnerKernel)
    assert spec.partial == (kind.check_rows is not Kernel.check_rows)


def test_specs_need_neither_scipy_nor_scikit_learn():
    code = "import sys; sys.modules.update(scipy=None, sklearn=None); import slimsvm.kernels.spec, slimsvm.ship.artefact"
    subprocess.run([sys.executable, "-c", code], check=True)


GOOD = {"gamma": 0.5, "coef0": -1.0, "degree": 3}
WRONG = {
    "no gamma": {"gamma": None},
    "gamma of 0": {"gamma": 0.0},
    "negative gamma": {"gamma": -1.0},
    "gamma of nan": {"gamma": np.nan},
    "gamma of inf": {"gamma": np.inf},
    "gamma beyond float64": {"gamma": 10**400},
    "gamma of truth": {"gamma": True},
    "gamma of text": {"gamma": "1"},
    "coef0 of nan": {"coef0": np.nan},
    "coef0 of inf": {"coef0": -np.inf},
    "negative degree": {"degree": -1},
    "degree of half": {"degree": 2.5},
    "endless degree": {"degree": 2**62},
    "degree above the limit": {"degree": MAX_DEGREE + 1},
    "a name that is no parameter": {"points": 100_000},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_parameters_outside_their_bounds_are_refused(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))}.*poly kernel|poly kernel has the parameters"):
        check_parameters("poly", GOOD | change)


def test_parameters_within_their_bounds_pass_and_none_may_be_missing():
    for degree in (0, MAX_DEGREE, np.int64(3)):
        check_parameters("poly", GOOD | {"degree": degree, "gamma": np.float32(0.5)})
    check_parameters("precomputed", {})
    with pytest.raises(ValueError, match="has the parameters"):
        check_parameters("rbf", {})


@pytest.mark.parametrize("value", [np.arange(99.0).reshape(33, 3), "x" * 5000, [[1]] * 999])
def test_refusals_are_one_short_line(value):
    with pytest.raises(ValueError, match="must be a finite number above 0") as told:
        check_parameters("rbf", {"gamma": value})
    with pytest.raises(ValueError, match="has no") as unknown:
        spec_of("y" * 5000, "slimsvm")
    with pytest.raises(ValueError, match="has the parameters") as named:
        check_parameters("poly", GOOD | {"x" * 5000: 1.0, "y" * 5000: 2.0})
    for error in (told, unknown, named):
        assert len(str(error.value)) < 400
        assert "\n" not in str(error.value)
