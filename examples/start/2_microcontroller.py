"""
I need it on a microcontroller
==============================

:func:`slimsvm.export` writes a model as C99: constant tables and one loop, no `malloc`, no files, no other library than
`expf` of `math.h`. The head of the file says what it costs.
"""

import ctypes
import subprocess
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm
from slimsvm import SlimSVC
from slimsvm.displays import TradeoffDisplay

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
model = SlimSVC(budget=40, C=10, random_state=0).fit(X, y)
print("test accuracy", round(model.score(X_test, y_test), 3))

# %%
# Write the C file
# ----------------
# With `precision="int8"` the tables have one byte for each number. `rows` are rows like those to predict. They set the
# range of the integers; a feature beyond it is clipped.

folder = Path(mkdtemp())
files = slimsvm.export(model, folder / "digits.c", precision="int8", rows=X)
print(*(file.name for file in files))
print((folder / "digits.c").read_text().partition("*/")[0])

# %%
# The firmware calls one function. It returns the number of the class; the header has an enum of all classes.
#
# .. code-block:: c
#
#     #include "digits.h"
#
#     float pixels[64];
#     int class = digits_predict(pixels);
#
# Does rounding change the answers?
# ---------------------------------
# Compile the file on your computer and compare it with Python on test rows. The tests of slimsvm do this too, with emulated
# Arm processors.

command = ["cc", "-O2", "-shared", "-fPIC", "digits.c", "-o", "digits.so", "-lm"]
subprocess.run(command, cwd=folder, check=True)
library = ctypes.CDLL(str(folder / "digits.so"))
rows = np.ascontiguousarray(X_test, dtype=np.float32)
pointer = ctypes.POINTER(ctypes.c_float)
answers = [library.digits_predict(row.ctypes.data_as(pointer)) for row in rows]
same = np.mean(model.classes_[answers] == model.predict(X_test))
print(f"C and Python give the same label for {same:.1%} of the test rows")

# %%
# How many bytes does accuracy cost?
# ----------------------------------
# The size of the tables is about (support vectors) x (features) x (bytes of a number). The picture is for float32; int8
# needs a quarter.

TradeoffDisplay.from_estimator(model, X_test, y_test, x="bytes")
plt.show()
