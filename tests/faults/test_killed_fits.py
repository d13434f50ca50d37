"""A fit that SIGKILL ends at any moment: the next one goes on, and the model is the same to the last bit."""

import signal
import subprocess
import sys

import pytest

import slimsvm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

#: fits with a checkpoint that is saved all the time, and saves the model; tells when the fit begins
FIT = """
import sys
import numpy as np, slimsvm
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
from slimsvm.trainers.smo import SMO
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 5))
y = np.sign(np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=400))
checkpoint, output = sys.argv[1:]
svc = SlimSVC(6, C=10.0, trainer=SMO(working_set=40), reducer=Slim(steps=2), random_state=0)
print("begun", flush=True)
slimsvm.save(svc.set_params(checkpoint=(checkpoint, 1e-3) if checkpoint else None).fit(X, y), output)
"""


def test_a_fit_that_is_killed_goes_on(python, tmp_path):
    assert python.run("-W", "ignore", "-c", FIT, "", "whole.slim")[0] == 0
    process = python.begin("-W", "ignore", "-c", FIT, "state", "m.slim")
    assert process.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.15)
    process.kill()
    assert python.end(process)[0] == -signal.SIGKILL
    assert not (tmp_path / "m.slim").exists()
    code, _, err = python.run("-W", "ignore", "-c", FIT, "state", "m.slim")
    assert (code, err) == (0, "")
    assert not (tmp_path / "state").exists()
    models = [slimsvm.load(tmp_path / name) for name in ("m.slim", "whole.slim")]
    for part in ("points", "coef", "bias"):
        first, second = (getattr(model.model_, part) for model in models)
        assert (first == second).all()
