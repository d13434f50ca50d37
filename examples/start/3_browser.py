"""
I need it in a browser
======================

The JavaScript export is one ES module without dependencies. Rows are classified in the page and never leave it.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm
from slimsvm import SlimSVC

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
model = SlimSVC(budget=30, C=10, random_state=0).fit(X, y)
print("test accuracy", round(model.score(X_test, y_test), 3))

# %%
# Write the module
# ----------------

module, _ = slimsvm.export(model, Path(mkdtemp(), "digits.mjs"))
print(module.name, module.stat().st_size, "bytes")

# %%
# Use it in a page
# ----------------
# `predict` returns the label, `scores` one number for each class. A row is an array of numbers.
#
# .. code-block:: html
#
#     <script type="module">
#       import { predict, scores } from "./digits.mjs";
#       const row = new Array(64).fill(0);
#       console.log(predict(row), scores(row));
#     </script>
#
# `node` runs the same module. `slimsvm report` writes a page in which your model runs live: :doc:`../seeing`.
#
# What the model keeps
# --------------------
# The support vectors of a small model are no training rows. They were moved to where they help most.

figure, axes = plt.subplots(3, 10, figsize=(8, 2.6))
for place, vector in zip(axes.ravel(), model.support_vectors_, strict=False):
    place.imshow(vector.reshape(8, 8), cmap="gray_r")
for place in axes.ravel():
    place.axis("off")
plt.show()
