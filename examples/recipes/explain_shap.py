"""
Explain your SVC with SHAP, after shrinking it
==============================================

Explainers that know nothing of the model ask it for thousands of predictions for every row that they explain. The time of
these predictions is that of the explanation. A small model that gives the same answers is explained sooner.

This page needs the library `shap <https://shap.readthedocs.io>`_.
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
# SHAP values say by how much each feature moves the score of a row away from the mean score.

background = shap.sample(X, 20, random_state=0)
shap.PermutationExplainer(small.decision_function, background, seed=0)(X_test[:1], silent=True)  # shap compiles once
values, seconds = {}, {}
for name, model in {"SVC": svc, "small": small}.items():
    start = process_time()
    explainer = shap.PermutationExplainer(model.decision_function, background, seed=0)
    values[name] = explainer(X_test[:8], silent=True).values
    seconds[name] = process_time() - start
print({name: f"{time:.2f} s" for name, time in seconds.items()})
print(f"correlation of the SHAP values {np.corrcoef(values['SVC'].ravel(), values['small'].ravel())[0, 1]:.3f}")

# %%
# Compare the explanations
# ------------------------

plt.scatter(values["SVC"].ravel(), values["small"].ravel(), s=8)
plt.axline((0, 0), slope=1, ls="--", color="0.5")
plt.xlabel("SHAP values of the SVC")
plt.ylabel("SHAP values of the small model")
plt.show()

# %%
# The features that matter most, by the mean size of their SHAP values:

for name, found in values.items():
    importance = np.abs(found).mean(axis=0)
    print(f"{name:<6}", ", ".join(data.feature_names[i] for i in np.argsort(-importance)[:4]))
