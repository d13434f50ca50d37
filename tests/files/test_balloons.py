"""Files of some kilobytes that claim or unpack to gigabytes are refused before the memory is asked for."""

import tracemalloc
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from slimsvm import SlimSVC, load, save
from slimsvm.files import container, mapped
from slimsvm.files.datasets import read_data
from slimsvm.files.decompression import LARGE, MOST_EXPANSION, check_unpacked_size
from slimsvm.kernels import RBF
from slimsvm.rows.precision import Prepared
from slimsvm.rows.threads import ThreadPool
from slimsvm.rows.tiles import MOST_PLACES, make_tiles

X, y = load_iris(return_X_y=True)


def write_zeros(path, n_bytes, method=zipfile.ZIP_DEFLATED, claimed=None):
    """An .npz archive with a row of that many bytes of zeros; its directory may claim more of them."""
    with zipfile.ZipFile(path, "w") as archive:
        np.lib.format.write_array(archive.open("y.npy", "w"), np.zeros(1))
        info = zipfile.ZipInfo("X.npy")
        info.compress_type = method
        with archive.open(info, "w", force_zip64=True) as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (1, n_bytes // 8)}
            np.lib.format.write_array_header_2_0(file, header)
            for _ in range(n_bytes >> 20):
                file.write(bytes(1 << 20))
        info.file_size += (claimed or n_bytes) - n_bytes
    return path


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["zip", "bzip2", "lzma"]
)
def test_an_archive_that_unpacks_to_a_thousandfold_is_refused(tmp_path, method):
    path = write_zeros(tmp_path / "zeros.npz", 1 << 20, method, claimed=2 * LARGE)
    assert path.stat().st_size < 1 << 15
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bytes unpack to 536,871,\d\d\d; if that is intended, save it by np.savez"):
        read_data(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 21
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("packed", "unpacked", "refused"),
    [(1000, LARGE, False), (1000, LARGE + 1, True), (LARGE // MOST_EXPANSION + 1, LARGE + 1, False)],
    ids=["not large", "large and expands", "large and expands little"],
)
def test_only_large_files_that_expand_are_refused(packed, unpacked, refused):
    with pytest.raises(ValueError, match="save it") if refused else nullcontext():
        check_unpacked_size(packed, unpacked, "save it")


def test_archives_as_people_write_them_are_read(tmp_path):
    words = (np.random.default_rng(0).random((500, 200)) < 0.02).astype(float)
    np.savez_compressed(tmp_path / "words.npz", X=words, y=np.arange(500))
    assert words.nbytes < MOST_EXPANSION * (tmp_path / "words.npz").stat().st_size
    np.testing.assert_array_equal(read_data(tmp_path / "words.npz")[0], words)


@pytest.fixture
def write_parquet(tmp_path):
    """write_parquet(**columns): a Parquet file of them, as people write it."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

    def write(**columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "d.parquet")
        return tmp_path / "d.parquet"

    return write


def test_equal_numbers_in_a_parquet_file_are_refused_by_their_count(write_parquet, monkeypatch):
    monkeypatch.setattr(mapped, "mapped_empty", None)  # no file is made
    count = LARGE // 8 // 64 + 1
    path = write_parquet(**dict.fromkeys(map(str, range(64)), np.zeros(count)), y=np.arange(count) % 2)
    assert MOST_EXPANSION * path.stat().st_size < LARGE
    with pytest.raises(ValueError, match=r"bytes unpack to 268,435,968; if that is intended, write it with"):
        read_data(path)


def test_one_long_word_as_the_label_of_every_row_is_refused(write_parquet):
    path = write_parquet(a=np.arange(4_000.0), y=np.repeat(np.array(["x" * 20_000], object), 4_000))
    assert path.stat().st_size < 1 << 18
    with pytest.raises(ValueError, match=r"bytes unpack to 320,000,000"):
        read_data(path)


def test_a_parquet_column_called_label_has_the_labels(write_parquet):
    X, y = read_data(write_parquet(label=np.array([1, 2]), x=np.array([3.0, 4.0]), y=np.array([5.0, 6.0])))
    np.testing.assert_array_equal(X, [[3, 5], [4, 6]])
    np.testing.assert_array_equal(y, [1, 2])


def test_parquet_files_as_people_write_them_are_read(write_parquet):
    words = (np.random.default_rng(0).random(20_000) < 0.02).astype(float)
    path = write_parquet(a=words, b=np.arange(20_000.0), y=np.where(words > 0, "rare", "common"))
    assert 2 * words.nbytes < MOST_EXPANSION * path.stat().st_size
    X, y = read_data(path)
    np.testing.assert_array_equal(X[:, 0], words)
    assert y[:3].tolist() == np.where(words > 0, "rare", "common")[:3].tolist()


def claiming(data, factor):
    """A container whose first array claims so many times its rows, with a right checksum."""
    header, arrays = container.unpack_file(data)
    old = b"".join(container.pack_file({}, arrays))
    payload = old[container.aligned(container.PREFIX + container.START.unpack_from(old)[2]) :]
    header["arrays"][0]["shape"][0] *= factor
    text = container.json.dumps(header).encode()
    rest = text + bytes(container.aligned(container.PREFIX + len(text)) - container.PREFIX - len(text)) + payload
    start = container.START.pack(container.MAGIC, container.FORMAT, len(text))
    return start + container.CHECKSUM.pack(container._checksum([start, rest])) + rest


@pytest.mark.parametrize("factor", [2, 1000, 1 << 30])
def test_models_and_checkpoints_hold_the_arrays_that_they_claim(tmp_path, factor):
    save(SlimSVC(C=3.0).fit(X, y), tmp_path / "model.slim")
    (tmp_path / "model.slim").write_bytes(claiming((tmp_path / "model.slim").read_bytes(), factor))
    with pytest.raises(ValueError, match=r"model.slim.*not where the sizes of the arrays put it"):
        load(tmp_path / "model.slim")
    state = b"".join(container.pack_file({"slimsvm": "0", "checkpoint": {}}, {"0": np.zeros(9)}))
    (tmp_path / "state").write_bytes(claiming(state, factor))
    with pytest.raises(ValueError, match=r"checkpoint .*state'.*not where the sizes of the arrays put it"):
        SlimSVC(checkpoint=tmp_path / "state").fit(X, y)


def test_points_of_billions_of_features_take_no_place_for_each():
    features = 2**31 - 1
    X = csr_array((np.ones(4, np.float32), ([0, 1, 2, 2], [0, 5, 7, features - 1])), shape=(3, features))
    model = SlimSVC(gamma=1.0).fit(X, [0, 1, 1])
    few = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], np.float32)
    expected = SlimSVC(gamma=1.0).fit(few, [0, 1, 1]).decision_function(few)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5)


@pytest.mark.parametrize("features", [10**4, MOST_PLACES // 4, 2**25])
def test_the_places_of_features_are_limited(features):
    X = csr_array(
        (np.ones(3, np.float32), np.array([0, 5, 9], np.int32), np.arange(4, dtype=np.int32)), shape=(3, features)
    )
    rows = Prepared(X, np.ones(3), None)
    tiles = make_tiles(RBF(1.0), rows, rows, ThreadPool(1))
    expected = np.where(np.eye(3), 1.0, np.exp(-2.0))
    np.testing.assert_allclose(tiles.matrix(), expected, rtol=1e-5)
