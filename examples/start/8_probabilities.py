"""
I need probabilities
====================

The scores of an SVM are no probabilities. With `calibration` a :class:`slimsvm.SlimSVC` learns how to turn scores into
probabilities, from rows that the scoring model was not trained on.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_moons
from sklearn.metrics import brier_score_loss

from slimsvm import SlimSVC

X, y = make_moons(2_000, noise=0.4, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.4, random_state=1)

# %%
# Choose a calibration
# --------------------
# "sigmoid" is Platt's method and needs few rows. "isotonic" follows any rising curve and needs a thousand rows or more.
# "temperature" has one number for all classes and keeps their order.

figure, axes = plt.subplots(figsize=(5, 5))
for calibration in ("sigmoid", "isotonic", "temperature"):
    model = SlimSVC(budget=8, trainer=None, calibration=calibration, random_state=0).fit(X, y)
    p = model.predict_proba(X_test)
    print(f"{calibration:<12} Brier score {brier_score_loss(y_test, p[:, 1]):.4f}")
    CalibrationDisplay.from_predictions(y_test, p[:, 1], n_bins=10, name=calibration, ax=axes)
plt.show()

# %%
# `predict` then returns the most probable class. Without `calibration` there is no `predict_proba`.
