"""
I want to notice what is new
============================

:class:`slimsvm.SlimOneClassSVM` learns what rows usually look like and calls the others novel, as
`sklearn.svm.OneClassSVM` does. It needs no labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import SlimOneClassSVM

X, _ = make_moons(600, noise=0.08, random_state=0)

# %%
# Train it
# --------
# `nu` is the share of the training rows that may be called novel. A small model follows the scores of the full one.

full = SlimOneClassSVM(nu=0.1, gamma=2.0).fit(X)
small = SlimOneClassSVM(budget=16, nu=0.1, gamma=2.0, random_state=0).fit(X)
X_test, _ = make_moons(2_000, noise=0.08, random_state=1)
print(len(full.support_vectors_), "->", len(small.support_vectors_), "support vectors")
answers = [model.predict(X_test) for model in (full, small)]
print("called novel:", *(f"{np.mean(answer == -1):.1%}" for answer in answers), "of new rows like the training rows")
print("same answer on", f"{np.mean(answers[0] == answers[1]):.1%}")

# %%
# See the boundaries
# ------------------

across, up = np.meshgrid(np.linspace(-1.6, 2.6, 150), np.linspace(-1.1, 1.6, 150))
plane = np.column_stack([across.ravel(), up.ravel()])
plt.scatter(X[:, 0], X[:, 1], s=4, color="0.6")
for model, color, name in ((full, "0.3", "full"), (small, "tab:blue", "small")):
    scores = model.decision_function(plane).reshape(across.shape)
    plt.contour(across, up, scores, levels=[0], colors=color)
    plt.plot([], [], color=color, label=f"{name}: {len(model.support_vectors_)} vectors")
vectors = small.support_vectors_
plt.scatter(vectors[:, 0], vectors[:, 1], marker="x", color="tab:blue")
plt.legend()
plt.show()
