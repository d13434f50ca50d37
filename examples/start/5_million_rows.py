"""
I have a million rows
=====================

Training a full model takes time that grows faster than the number of rows. You do not need one: with `trainer=None` slimsvm
fits the small model directly to the labels. Most of that work uses a subsample, and all rows take part at the end.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import SlimSVC

# %%
# Fit the small model directly
# ----------------------------
# The rows of this page are made, and few, so that it builds quickly. Raise the last number to a million and run it again.

sizes, seconds, errors = [2_000, 8_000, 32_000, 128_000], [], []
X_test, y_test = make_moons(5_000, noise=0.25, random_state=1)
for n in sizes:
    X, y = make_moons(n, noise=0.25, random_state=0)
    start = perf_counter()
    model = SlimSVC(budget=16, trainer=None, gamma=1.0, random_state=0).fit(X, y)
    seconds.append(perf_counter() - start)
    errors.append(1 - model.score(X_test, y_test))
print([f"{error:.1%}" for error in errors])

# %%
# How the time grows
# ------------------

growth = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
plt.loglog(sizes, seconds, "o-")
plt.xlabel("rows")
plt.ylabel("seconds to fit")
plt.title(f"time grows with the number of rows to the power {growth:.1f}")
plt.show()

# %%
# More ways to save time and memory
# ---------------------------------
# - Rows keep the precision they come in: float32 needs half the memory of float64. Sparse rows stay sparse.
# - `reducer=Slim(time_limit=60)` ends the search after a minute and keeps the best model found by then.
# - `trainer="sbp"` reaches a good full model early. `device="cuda"` moves the work to a GPU (:doc:`../gpu`).
# - Rows that do not fit into memory are a stream (:doc:`4_stream`).
