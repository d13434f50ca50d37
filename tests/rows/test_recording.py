"""Recorded work on a CUDA device: the same results as plain work, and None where nothing can be recorded."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.rows.array_matrix import captured
from slimsvm.rows.backends import has_torch_device
from slimsvm.rows.homes import open_rows

cuda = pytest.mark.skipif(not has_torch_device("cuda"), reason="no CUDA GPU")


def backend(device):
    pytest.importorskip(device.partition(":")[0].replace("cuda", "torch"))
    return open_rows(RBF(0.5), np.ones((2, 2)), device=device).backend


@pytest.mark.parametrize("device", ["array_api_strict", "torch:cpu"])
def test_other_devices_capture_nothing(device):
    on, runs = backend(device), []
    assert captured(on, lambda: runs.append(1)) is None
    assert runs == []


@cuda
def test_a_captured_graph_repeats_the_work_and_does_not_do_it_at_first():
    on, runs = backend("cuda"), []
    x = on.send(np.arange(4.0), np.float64)

    def work():
        runs.append(1)
        x.mul_(2.0)
        x.add_(1.0)

    graph = captured(on, work)
    assert len(runs) == 1
    np.testing.assert_array_equal(on.fetch(x), np.arange(4.0))
    for _ in range(3):
        graph.replay()
    assert len(runs) == 1
    np.testing.assert_array_equal(on.fetch(x), 8.0 * np.arange(4.0) + 7.0)


@cuda
def test_work_that_waits_for_the_device_is_not_captured():
    on = backend("cuda")
    x = on.send(np.arange(4.0), np.float64)
    assert captured(on, lambda: x.add_(float(x.sum()))) is None
    np.testing.assert_array_equal(on.fetch(x), np.arange(4.0))
    assert float((x + 1).sum()) == 10.0  # the device works on
