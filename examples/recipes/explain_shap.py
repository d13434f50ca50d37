"""
Explain your SVC with SHAP, after shrinking it
==============================================

The Shapley value of a feature is its share of a row's score. Explainers that know nothing of the model ask it for thousands
of predictions for every row. slimsvm computes the values of a kernel model exactly, in a time that grows with its support
vectors, so a small model that gives the same answers is explained sooner.

The plots need the library `shap <https://shap.readthedocs.io>`_.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm

data = load_breast_cancer()
X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
svc = make_pipeline(StandardScaler(), SVC(C=1)).fit(X, y)

# %%
# Shrink it to a model that follows it
# ------------------------------------
# The default reducer, `slim`, looks for a good classifier, which may come to its answers in another way. An explanation
# needs a small model that follows the large one. `reducer="reduced-set"` looks for the function nearest to the large one.

small = slimsvm.compress(svc, X, y, budget=32, reducer="reduced-set", random_state=0)
for name, model in {"SVC": svc, "small": small}.items():
    print(
        f"{name:<6} {len(model[-1].support_vectors_):>4} support vectors, test accuracy {model.score(X_test, y_test):.3f}"
    )

# %%
# Do the two agree?
# -----------------
# An explanation of the small model is one of the large model only where both say the same. Check that first.

both = np.corrcoef(svc.decision_function(X_test), small.decision_function(X_test))[0, 1]
same = np.mean(svc.predict(X_test) == small.predict(X_test))
print(f"correlation of the scores {both:.3f}, same label on {same:.1%} of the test rows")

# %%
# Explain both
# ------------
# :func:`slimsvm.shapley` computes exact Shapley values of rbf, laplacian and linear models in closed form, without a
# background of rows: the kernel value of an absent feature is 1. It takes an SVC too, and its time grows with the number of
# support vectors. For each row the values and the base value add up to the score.

values, seconds = {}, {}
for name, model in {"SVC": svc, "small": small}.items():
    start = process_time()
    values[name] = slimsvm.shapley(model, X_test)
    seconds[name] = process_time() - start
print({name: f"{time:.3f} s for {len(X_test)} rows" for name, time in seconds.items()})
both = np.corrcoef(values["SVC"].values.ravel(), values["small"].values.ravel())[0, 1]
print(f"correlation of the Shapley values {both:.3f}")

# %%
# The plots of shap take them
# ---------------------------

values["small"].feature_names = list(data.feature_names)
shap.plots.beeswarm(values["small"], max_display=8, show=False)
plt.show()

# %%
# The features that matter most, by the mean size of their Shapley values:

for name, found in values.items():
    importance = np.abs(found.values).mean(axis=0)
    print(f"{name:<6}", ", ".join(data.feature_names[i] for i in np.argsort(-importance)[:4]))
