"""
I want to predict a number
==========================

:class:`slimsvm.SlimSVR` is kernel regression with the epsilon-insensitive loss, as `sklearn.svm.SVR`, on a budget of
support vectors.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SlimSVR

X, y = make_friedman1(1_500, noise=1.0, random_state=0)
X_test, y_test = make_friedman1(2_000, noise=1.0, random_state=1)

# %%
# Train it
# --------
# `epsilon` is in the units of the targets: errors of up to 0.5 cost nothing here.

full = make_pipeline(StandardScaler(), SlimSVR(C=10, epsilon=0.5)).fit(X, y)
slim = SlimSVR(budget=32, C=10, epsilon=0.5, random_state=0)
small = make_pipeline(StandardScaler(), slim).fit(X, y)
for model in (full, small):
    print(len(model[-1].support_vectors_), f"support vectors, R2 {model.score(X_test, y_test):.3f}")

# %%
# Compare the two
# ---------------

plt.scatter(full.predict(X_test), small.predict(X_test), s=4)
ends = np.array([0, 28])
plt.plot(ends, ends, "--", color="0.5")
plt.xlabel("predicted by the full model")
plt.ylabel("predicted by the small model")
plt.show()

# %%
# Ship it
# -------
# A regressor is exported like a classifier. The scaler is folded in.

print(*(file.name for file in slimsvm.export(small, Path(mkdtemp(), "friedman.c"))))
run = slimsvm.runtime(small)
print(run(X_test[0]), small.predict(X_test[:1])[0])
