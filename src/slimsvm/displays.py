"""Pictures after scikit-learn's conventions; they need matplotlib, an extra: pip install "slimsvm[plots]"."""

from .studio.displays import (
    CalibrationDisplay,
    ChoiceDisplay,
    ConvergenceDisplay,
    ParetoDisplay,
    SupportVectorsDisplay,
    TradeoffDisplay,
)

__all__ = [
    "CalibrationDisplay",
    "ChoiceDisplay",
    "ConvergenceDisplay",
    "ParetoDisplay",
    "SupportVectorsDisplay",
    "TradeoffDisplay",
]
