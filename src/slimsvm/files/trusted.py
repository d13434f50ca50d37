"""The types that skops must trust to load an estimator: `skops.io.load(file, trusted=TRUSTED_TYPES)`."""

from __future__ import annotations

from ..calibration import CALIBRATIONS
from ..estimators import MACHINES
from ..estimators.streams import Stream
from ..goals import GOALS
from ..kernels import KERNELS
from ..made import Made
from ..model import Expansion, Status
from ..pairs import PairCoefficients
from ..papers.budget_svm import NORMS
from ..papers.forgetron_rbp import ForgetronState
from ..reducers import REDUCERS
from ..selection.path import Path, Step
from ..slim.metric_search import Learning
from ..slim.point_search import Schedule
from ..solvers.free_rows import NewtonRule
from ..solvers.online import State
from ..trainers import TRAINERS
from ..trainers.bsgd import DescentState

_TABLES = (KERNELS, GOALS, CALIBRATIONS, TRAINERS, REDUCERS, NORMS)
_STREAMS: list[type] = [Stream, State, DescentState, ForgetronState]
_TYPES = [
    *MACHINES,
    Expansion,
    Made,
    PairCoefficients,
    Status,
    Path,
    Step,
    Learning,
    Schedule,
    NewtonRule,
    *_STREAMS,
    *(kind for table in _TABLES for kind in table.values()),
]

#: the types of slimsvm that a saved estimator may hold; none of them runs code when loaded
TRUSTED_TYPES = sorted({f"{kind.__module__}.{kind.__qualname__}" for kind in _TYPES})
