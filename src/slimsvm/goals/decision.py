"""Decision: how the outputs of a row become its prediction. Exporters have code for each."""

from __future__ import annotations

from enum import Enum


class Decision(Enum):
    """The rule by which a goal decodes outputs."""

    SIGN = "one output; class 1 where it is above 0, else class 0"
    LARGEST = "an output for each class; the largest wins, the first of equals"
    VOTES = "an output for each pair of classes, which votes; the class with the most votes wins, the first of equals"
    SCORED_VOTES = "as VOTES, and sums of outputs decide between equal votes"
    DAG = "an output for each pair of classes; that of the first and last remaining class removes one, until one is left"
    VALUE = "one output, the predicted value"
    SIDE = "one output; +1 where it is 0 or more, else -1"
    VALUES = "an output for each target, its predicted value"
