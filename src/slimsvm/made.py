"""What made a model of a path, as fields; paths show its text."""

from __future__ import annotations

from dataclasses import dataclass

from .goals.demands import Demands


@dataclass(frozen=True)
class Made:
    """The settings that made a model: in `words`, or as fields where a method goes on from what it made."""

    words: str = ""
    target: str = ""  # "label" or "slant"
    decay: float = 1.0  # as a multiple of the one that follows from C and the size
    metric: str = "fixed"
    loss: str = Demands.name
    stopped: bool = False  # before its last steps: the loss on validation rows rose
    precision: str = ""  # of the tables that it was trained for; "" where it was not trained for any
    refit: bool = False  # its coefficients are the best ones for its points

    @classmethod
    def of(cls, settings: Made | str) -> Made:
        """Return the settings of a method, which may give words only."""
        return cls(settings) if isinstance(settings, str) else settings

    @property
    def joint(self) -> bool:
        """Whether points, coefficients and a metric moved together; otherwise the coefficients followed the points."""
        return self.metric != "fixed" or self.loss != Demands.name

    def __str__(self) -> str:
        said = {
            self.words: bool(self.words),
            f"target={self.target}": bool(self.target),
            f"decay x {self.decay:g}": self.decay != 1,
            f"metric={self.metric}": self.joint,
            f"loss={self.loss}": self.loss != Demands.name,
            f"precision={self.precision}": self.precision not in ("", "float32"),
            "stopped early": self.stopped,
            "refit": self.refit,
        }
        return ", ".join(part for part, true in said.items() if true)
