"""
I have an SVC that is too big
=============================

An `SVC` keeps hundreds or thousands of training rows as support vectors. Every prediction evaluates the kernel with each
of them. :func:`slimsvm.compress` makes a small model of a trained one: same kernel, same labels, far fewer support vectors.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.displays import TradeoffDisplay

X, digits = load_digits(return_X_y=True)
odd = digits % 2 == 1
X, X_test, y, y_test = train_test_split(X, odd, random_state=0)
svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y)
print(len(svc[-1].support_), f"support vectors, accuracy {svc.score(X_test, y_test):.3f}")

# %%
# Shrink it to a budget
# ---------------------
# `compress` takes the model, rows and labels such as it was trained on, and a budget. A Pipeline stays a Pipeline with the
# same fitted transformers.

small = slimsvm.compress(svc, X, y, budget=32, random_state=0)
print(len(small[-1].support_vectors_), f"support vectors, accuracy {small.score(X_test, y_test):.3f}")

# %%
# Or name the loss of accuracy that you accept
# --------------------------------------------
# With `tolerance`, slimsvm keeps the smallest model whose error on validation rows is within that much of the full model's.
# The full model was trained on these rows, which makes its error there too low. So models like it are trained without the
# validation rows and compared with; or give rows that it has not seen as `X_val` and `y_val`.

within = slimsvm.compress(svc, X, y, tolerance=0.03, random_state=0)
print(len(within[-1].support_vectors_), f"support vectors, accuracy {within.score(X_test, y_test):.3f}")

# %%
# See all sizes at once
# ---------------------
# `path_` holds the models of all sizes that were tried, with their validation errors.

print(small[-1].path_)

# %%
# A display draws their errors on the test rows, and the full model as a dashed line. Rows go through the scaler first.

rows, rows_test = svc[:-1].transform(X), svc[:-1].transform(X_test)
full = slimsvm.compress(svc[-1], rows, y)  # without a limit: the same function as a SlimSVC
TradeoffDisplay.from_estimator(small[-1], rows_test, y_test, full=full)
plt.show()

# %%
# Keep it
# -------
# A `.slim` file holds numbers and names only. Loading one runs no code, unlike a pickle.

file = Path(mkdtemp(), "odd.slim")
slimsvm.save(small, file)
again = slimsvm.load(file)
print((again.predict(X_test) == small.predict(X_test)).all())
