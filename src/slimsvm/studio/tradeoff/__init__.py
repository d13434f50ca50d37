"""Size against error: runs of many methods and budgets on one data set, as rows that displays and reports are made of."""

from .datasets import DATASETS, open_data
from .result import Tradeoff, read_tradeoff
from .rows import read_rows
from .run import Progress, tradeoff
from .summary import smallest_good

__all__ = ["DATASETS", "Progress", "Tradeoff", "open_data", "read_rows", "read_tradeoff", "smallest_good", "tradeoff"]
