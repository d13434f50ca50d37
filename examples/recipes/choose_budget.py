"""
Choose a budget
===============

How small can the model be? That depends on the data. Three ways to find out, from the quickest to the most thorough.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm
from slimsvm import SlimSVC
from slimsvm.displays import TradeoffDisplay

X, digits = load_digits(return_X_y=True)
odd = digits % 2 == 1
X_train, X_test, y_train, y_test = train_test_split(X, odd, random_state=0)

# %%
# Look at the path of one fit
# ---------------------------
# One fit makes models of many sizes and counts the errors of each on validation rows. Of the models whose error is within
# a standard error of the lowest, the largest within the budget is kept.

model = SlimSVC(budget=64, C=10, random_state=0).fit(X_train, y_train)
for step in model.path_:
    print(f"{step.size:>3} support vectors: {step.error:6.2%} ± {step.standard_error:.2%}")
print("kept:", len(model.support_vectors_))

# %%
# Ask for a tolerance
# -------------------
# The smallest model whose validation error is at most one point above that of the full model:

model = SlimSVC(tolerance=0.01, C=10, random_state=0).fit(X_train, y_train)
print(len(model.support_vectors_), f"support vectors, accuracy {model.score(X_test, y_test):.3f}")

# %%
# Compare methods and sizes
# -------------------------
# :func:`slimsvm.tradeoff` trains several methods at several sizes and measures each model on test rows. Several seeds show
# how much of a difference is chance: the bars are standard errors.

found = slimsvm.tradeoff(X, odd, methods=["slim", "nystroem"], budgets=[8, 16, 32], seeds=3, C=10, name="odd digits")
TradeoffDisplay.from_rows(found)
plt.show()

# %%
# Choose on validation rows, not on test rows: a size that was chosen for its test error looks better than it is. The rows
# of the trade-off have both errors.

for row in found.rows:
    if row["seed"] == 0 and row["method"] == "slim":
        print(f"{row['size']:>3} support vectors: validation {row['validation_error']:6.2%}, test {row['error']:6.2%}")

# %%
# From the shell, `slimsvm tradeoff` and `slimsvm report` do the same and make a page with a slider: :doc:`../seeing`.
