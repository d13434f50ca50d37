"""
Use your own kernel
===================

A kernel is a function of two sets of rows that returns the matrix of their similarities. Any such function works if its
matrices have no negative eigenvalues.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import train_test_split

from slimsvm import SlimSVC

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)

# %%
# A function as a kernel
# ----------------------
# A sum of two kernels is a kernel. slimsvm knows no gradient of yours, so the default reducer `slim`, which moves support
# vectors, cannot be used. Choose a reducer that selects rows: `spsvm`, `slant-aggressive` or another of :doc:`../reducers`.


def mixed(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the sum of a wide rbf and a quadratic kernel."""
    return rbf_kernel(A, B, gamma=0.0005) + 0.1 * polynomial_kernel(A, B, degree=2, gamma=0.001)


full = SlimSVC(C=10, kernel=mixed, random_state=0).fit(X, y)
small = SlimSVC(60, C=10, kernel=mixed, reducer="spsvm", random_state=0).fit(X, y)
for model in (full, small):
    print(len(model.support_vectors_), f"support vectors, accuracy {model.score(X_test, y_test):.3f}")

# %%
# A kernel matrix
# ---------------
# With `kernel="precomputed"` you give the matrix itself, for strings, graphs or anything else that has a kernel. Support
# vectors are then column numbers: a prediction needs the kernel with these columns only.

K, K_test = mixed(X, X), mixed(X_test, X)
precomputed = SlimSVC(60, C=10, kernel="precomputed", reducer="spsvm", random_state=0).fit(K, y)
columns = precomputed.support_vectors_.ravel()
print(columns[:10], "test accuracy", round(precomputed.score(K_test, y_test), 3))

# %%
# The rows that were selected:

figure, axes = plt.subplots(3, 10, figsize=(8, 2.6))
for place, column in zip(axes.ravel(), columns, strict=False):
    place.imshow(X[column].reshape(8, 8), cmap="gray_r")
    place.axis("off")
plt.show()

# %%
# A function cannot be saved in a `.slim` file or exported. Use a kernel that has a name for models to ship: linear, rbf,
# poly, sigmoid, laplacian or chi2.
