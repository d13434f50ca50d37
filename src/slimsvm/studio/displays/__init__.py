"""Pictures after scikit-learn's conventions: values in `__init__`, `from_...` to make them, artists as attributes.

They need matplotlib, which is the extra: pip install "slimsvm[plots]".
"""

from .calibration import CalibrationDisplay
from .choice import ChoiceDisplay
from .convergence import ConvergenceDisplay
from .pareto import ParetoDisplay
from .support_vectors import SupportVectorsDisplay
from .tradeoff import TradeoffDisplay

__all__ = [
    "CalibrationDisplay",
    "ChoiceDisplay",
    "ConvergenceDisplay",
    "ParetoDisplay",
    "SupportVectorsDisplay",
    "TradeoffDisplay",
]
