"""Draw the picture of the README: test error against the number of support vectors, on handwritten digits.

python examples/tradeoff.py docs/tradeoff.svg      (needs the extra: pip install "slimsvm[plots]")
"""

from __future__ import annotations

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from slimsvm import SlimSVC

#: the reducers compared, and their colours
SHOWN = {"slim": "tab:blue", "reduced-set": "tab:green", "spsvm": "tab:orange", "slant-aggressive": "0.5"}


def main(output: str) -> None:
    """Fit once for each reducer, whose path holds models of all sizes, and write the picture."""
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    full = SlimSVC(C=10).fit(X, y)

    mpl.rcParams |= {"svg.hashsalt": "slimsvm", "font.size": 11}
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for reducer, color in SHOWN.items():
        path = SlimSVC(256, C=10, reducer=reducer, random_state=0).fit(X, y).path_
        steps = [step for step in path if step.size >= 8]
        errors = [100 * np.mean(full.classes_[step.model(X_test).argmax(axis=1)] != y_test) for step in steps]
        axes.plot([step.size for step in steps], errors, "o-", ms=4, color=color, label=reducer)
    axes.axhline(100 * (1 - full.score(X_test, y_test)), ls="--", color="0.4", label=f"full model: {full.model_.size}")
    axes.set(xscale="log", xlabel="support vectors", ylabel="test error, %", ylim=(0, None), title="Handwritten digits")
    sizes = [8, 16, 32, 64, 128, 256]
    axes.set_xticks(sizes, map(str, sizes), minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
