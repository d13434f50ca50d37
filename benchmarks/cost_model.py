"""A cost model of fits on a cluster: what a round takes in seconds, bytes and memory, from measured rounds.

python -m benchmarks scaling --workers | tee rounds.jsonl
python -m benchmarks.cost_model rounds.jsonl        the model, its error, and 10^9 rows on 100 machines

A round of `smo` with n rows of d features in p parts on k workers, of which m rows of the working set moved, takes

    seconds   start + send p + evaluate n m / k + bring n + block w^2         each factor at least 0; if the workers share
                                                                              a machine, k is its number of cores at most
    bytes     8 n q to the process that leads, and the working set: (1 + p) w (4 d + 8)
    memory    of a worker: its share of the rows, twice; of the process that leads: VECTORS numbers for each row

Factors are fitted to the seconds of measured rounds by nonnegative least squares, relative to each round's own seconds.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.timing import line

#: numbers for each row that the process that leads holds: labels, weights, bounds, responses, coefficients and copies
VECTORS = 12
TERMS = ("start", "send", "evaluate", "bring", "block")


@dataclass(frozen=True)
class Round:
    """What decides the cost of a round on a cluster."""

    rows: int
    workers: int
    parts: int
    moved: float
    working_set: int
    features: int = 50
    outputs: int = 1
    cores: int | None = None  # of the machine that all processes share; None if each worker has its own

    @property
    def terms(self) -> np.ndarray:
        """The amount of each kind of work, in the order of TERMS."""
        work = self.rows * self.moved / min(self.workers, self.cores or self.workers)
        return np.array([1.0, self.parts, work, self.rows, self.working_set**2], dtype=float)

    @property
    def bytes_moved(self) -> int:
        """Bytes between the processes, both ways."""
        rows_of_working_set = self.working_set * (4 * self.features + 8)
        return 8 * self.rows * self.outputs + (1 + self.parts) * rows_of_working_set

    @property
    def worker_bytes(self) -> int:
        """Memory for the rows of one worker: as they came, and in the form of tiles."""
        return 2 * 4 * self.features * -(-self.rows // self.workers)

    @property
    def leader_bytes(self) -> int:
        """Memory of the process that leads."""
        return 8 * VECTORS * self.rows * self.outputs + 4 * self.working_set**2


@dataclass(frozen=True)
class CostModel:
    """Seconds for each unit of the terms of a round."""

    factors: np.ndarray

    @classmethod
    def fitted(cls, rounds: list[Round], seconds: np.ndarray) -> CostModel:
        """Return the model with the least squared relative errors."""
        table = np.array([each.terms for each in rounds]) / seconds[:, None]
        units = table.max(axis=0)  # terms differ by ten powers of ten
        return cls(nnls(table / units, np.ones(seconds.size))[0] / units)

    def seconds(self, a_round: Round) -> float:
        """Return the seconds of a round."""
        return float(self.factors @ a_round.terms)


def measured(path: Path) -> tuple[list[Round], np.ndarray]:
    """Return the rounds in lines of `benchmarks.scaling --workers`, and the seconds of each."""
    lines = [json.loads(each) for each in path.read_text().splitlines() if each.startswith("{")]
    lines = [each for each in lines if each.get("part") == "cluster" and each.get("rounds")]
    names = ("rows", "workers", "parts", "moved", "working_set", "features", "cores")
    rounds = [Round(**{name: each[name] for name in names if name in each}) for each in lines]
    return rounds, np.array([each["seconds"] / each["rounds"] for each in lines])


def told(model: CostModel, a_round: Round, **more: Any) -> None:
    """Print what the model predicts for a round."""
    shares = model.factors * a_round.terms / max(model.seconds(a_round), 1e-300)
    line(
        benchmark="cost model",
        rows=a_round.rows,
        workers=a_round.workers,
        seconds_a_round=model.seconds(a_round),
        shares={name: round(float(share), 3) for name, share in zip(TERMS, shares, strict=True)},
        mb_a_round=a_round.bytes_moved / 1e6,
        worker_gb=a_round.worker_bytes / 1e9,
        leader_gb=a_round.leader_bytes / 1e9,
        **more,
    )


def main() -> None:
    """Fit the model to a file of lines; print its factors, its errors, and what it predicts."""
    rounds, seconds = measured(Path(sys.argv[1]))
    model = CostModel.fitted(rounds, seconds)
    line(benchmark="cost model", factors=dict(zip(TERMS, map(float, model.factors), strict=True)), rounds=len(rounds))
    for each, real in zip(rounds, seconds, strict=True):
        told(model, each, measured_seconds=float(real))
    moved = float(np.mean([each.moved for each in rounds]))
    for rows, workers in ((10**7, 10), (10**8, 100), (10**9, 100)):
        told(model, Round(rows, workers, 2 * workers, moved, rounds[0].working_set), predicted=True)


if __name__ == "__main__":
    main()
