"""Size against error: runs of many methods and budgets on one data set, as rows that displays and reports are made of."""

from .choice import smallest_good
from .datasets import DATASETS, open_data
from .rows import read_rows
from .run import Progress, tradeoff
from .value import Tradeoff, read_tradeoff

__all__ = ["DATASETS", "Progress", "Tradeoff", "open_data", "read_rows", "read_tradeoff", "smallest_good", "tradeoff"]
