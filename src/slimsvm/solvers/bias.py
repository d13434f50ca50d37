"""The bias for outputs that are known but for it."""

from __future__ import annotations

import numpy as np

from ..kernels import Array


def best_bias(values: Array, y: Array, cap: Array) -> float:
    """Return the b that minimises sum_i cap_i max(0, 1 - y_i (values_i + b)).

    The slope is minus the caps of the positive rows at first, and grows by cap_i at each b = y_i - values_i.
    """
    turns = y - values
    order = np.argsort(turns)
    falls = int(np.searchsorted(np.cumsum(cap[order]), cap[y > 0].sum()))
    return float(turns[order[min(falls, order.size - 1)]])


def fewest_errors(outputs: Array, y: Array, weights: Array) -> float:
    """Return the bias with which outputs have the fewest errors, by weight."""
    order = np.argsort(outputs)
    sorted_outputs, signed = outputs[order], (y * weights)[order]
    middles = (sorted_outputs[1:] + sorted_outputs[:-1]) / 2
    # errors of a change of class between two rows: positives below it, less negatives below it
    errors = np.where(sorted_outputs[1:] > sorted_outputs[:-1], np.cumsum(signed)[:-1], np.inf)
    return -float(middles[errors.argmin()]) if np.isfinite(errors).any() else 0.0
