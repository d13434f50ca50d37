"""One page to decide on: a trade-off as self-contained HTML with a live model, and a model card."""

from .report import report

__all__ = ["report"]
