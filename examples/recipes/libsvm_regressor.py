"""
Shrink a regressor that others trained
======================================

Many programs carry a trained kernel regressor in LIBSVM's format, for example the video quality score VMAF and the image
quality score BRISQUE. You can shrink such a model without its training rows, or with rows of your own and no labels. This
page makes a regressor of its own and a file of it, so that it runs anywhere; put the name of your file in its place.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.svm import NuSVR

import slimsvm

X, y = make_friedman1(1_000, noise=1.0, random_state=0)
file = Path(mkdtemp(), "score.libsvm")
slimsvm.export(NuSVR(C=20).fit(X, y), file)

# %%
# Read the file
# -------------
# A LIBSVM file names no features after the last one that a support vector has. If your rows have more, use
# `slimsvm.files.models.read_libsvm(path, n_features)`. It also reads a model that stands as text in another file, and its
# documentation shows how to add the scaling that such programs do themselves.

regressor = slimsvm.load(file)
print(type(regressor).__name__, len(regressor.support_vectors_), "support vectors")

# %%
# Shrink it, without rows and with rows
# -------------------------------------
# The goal is now the regressor's own score, not the truth: without `y`, a small model follows the predictions of the full
# one. Without `X`, the support vectors and points between them take the place of rows. Rows like those to come are better,
# and they need no labels.

rows, _ = make_friedman1(1_000, random_state=1)
new_rows, _ = make_friedman1(2_000, random_state=2)
wanted = regressor.predict(new_rows)
budgets = [4, 8, 16, 32, 64]
errors: dict[str, list[float]] = {"without rows": [], "with rows": []}
for budget in budgets:
    models = {
        "without rows": slimsvm.compress(regressor, budget=budget, random_state=0),
        "with rows": slimsvm.compress(regressor, rows, budget=budget, random_state=0),
    }
    for name, model in models.items():
        errors[name].append(float(np.sqrt(np.mean((model.predict(new_rows) - wanted) ** 2))))

# %%
# How far is the small score from the full one?
# ---------------------------------------------
# Compare them in the units of the score, on rows that had no part in the shrinking.

for name, values in errors.items():
    plt.semilogx(budgets, values, "o-", label=name)
plt.axhline(float(np.std(wanted)), ls="--", color="0.5", label="standard deviation of the score")
plt.xticks(budgets, [str(budget) for budget in budgets])
plt.minorticks_off()
plt.ylim(bottom=0)
plt.xlabel("support vectors")
plt.ylabel("root mean squared difference")
plt.legend()
plt.show()

# %%
# Write it back
# -------------
# The program that has the large model can read the small one.

slimsvm.export(model, file.with_name("score_small.libsvm"))

# %%
# VMAF of 8 support vectors, BRISQUE of 64
# ----------------------------------------
# VMAF's file is LIBSVM's text within JSON, with a scaling of features and scores beside it. `benchmarks/regressors.py`
# reads it and shrinks it without any rows. Of 211 support vectors 8 remain, 228 bytes of C tables. The score differs from
# the full one by 0.03 points of 100 in the root mean square, and by 0.24 at most
# (`python -m benchmarks.regressors --models vmaf --sizes 8`; `SLIMSVM_MODELS` names the folder of the file).
#
# BRISQUE keeps 64 of its 758 support vectors, 9,476 bytes. Its score differs by 0.35 points of 100 in the root mean square,
# and by 3.9 at most (`--models brisque --sizes 64`).
