"""
I have a stream
===============

Three trainers learn row by row and never keep more than `budget` support vectors: `bsgd`, `forgetron` and `rbp`. The stream
may be larger than memory.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from slimsvm import SlimSVC

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)

# %%
# Learn batch by batch
# --------------------
# The first call of `partial_fit` needs all labels that the stream will ever have. Give `gamma` as a number: with "scale" it
# would depend on the first batch.

stream = SlimSVC(budget=100, trainer="bsgd", gamma=0.001, random_state=0)
seen, accuracy = [], []
for start in range(0, len(X), 50):
    batch = slice(start, start + 50)
    stream.partial_fit(X[batch], y[batch], classes=range(10))
    seen.append(start + len(X[batch]))
    accuracy.append(stream.score(X_test, y_test))
print(len(stream.support_vectors_), f"support vectors, accuracy {accuracy[-1]:.3f}")

# %%
# It can predict at any time
# --------------------------

plt.plot(seen, accuracy, "o-", ms=3)
plt.xlabel("rows seen")
plt.ylabel("test accuracy")
plt.show()

# %%
# `bsgd` takes weights of rows, and with the rbf kernel it merges points that are close to each other when the budget is
# full. `forgetron` drops the oldest point, which suits streams that change. See :doc:`../methods`.
