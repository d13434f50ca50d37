"""Small models of several kinds as C, by name; one file for each kind.

`choices` of a contender are what it may be tuned by; `fit` gives the C source and the same function in Python.
"""

from __future__ import annotations

from .base import Contender
from .kernel_machines import NystroemContender, SlimContender
from .networks import NetworkContender
from .projected import Bonsai, ProtoNN
from .trees import HistGradientBoosting, LightGBM

CONTENDERS: dict[str, Contender] = {
    each.name: each
    for each in (
        SlimContender("slim", ("auto", "both")),
        SlimContender("slim-fixed", ("fixed",)),
        HistGradientBoosting("hist-gradient-boosting"),
        LightGBM("lightgbm"),
        NetworkContender("mlp"),
        ProtoNN("protonn"),
        Bonsai("bonsai"),
        NystroemContender("nystroem"),
    )
}
