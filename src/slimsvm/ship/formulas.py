"""Every kernel as two expressions of C, which are JavaScript too: a sum over features of `term`, and its `value`.

`x` and `z` are a feature of the row and of the point, `s` is the sum. Functions of the language are in braces.
"""

from __future__ import annotations

from dataclasses import dataclass

from .artefact import Artefact


@dataclass(frozen=True)
class Formula:
    """k(x, z) = value(sum of term)."""

    term: str
    value: str
    integer: bool = True  # whether the sum of integers is an integer


DIFFERENCE = "(x - z) * (x - z)"
FORMULAS = {
    "linear": Formula("x * z", "s"),
    "rbf": Formula(DIFFERENCE, "{exp}(-GAMMA * s)"),
    "poly": Formula("x * z", "power(GAMMA * s + COEF0)"),
    "sigmoid": Formula("x * z", "{tanh}(GAMMA * s + COEF0)"),
    "laplacian": Formula("(x > z ? x - z : z - x)", "{exp}(-GAMMA * s)"),
    "chi2": Formula(f"(x + z != 0 ? {DIFFERENCE} / (x + z) : 0)", "{exp}(-GAMMA * s)", integer=False),
}


def formula_of(artefact: Artefact, target: str) -> Formula:
    """The formula of an artefact's kernel."""
    if artefact.kernel not in FORMULAS:
        raise ValueError(f"the {target} export has no {artefact.kernel!r} kernel; it has {sorted(FORMULAS)}")
    return FORMULAS[artefact.kernel]
