"""Compare SlimSVC(budget=128), from the rows to the small model, with SVC.fit: seconds and test errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.problems import problem
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC
from slimsvm.rows.threads import thread_count


def main() -> None:
    """Run a8a with three seeds; the validation rows differ with the seed."""
    p = problem("a8a")
    settings: dict[str, Any] = {"gamma": p.gamma, "C": p.C}
    models = {f"seed{seed}": SlimSVC(128, random_state=seed, **settings) for seed in range(3)}
    models["svc"] = SVC(**settings, cache_size=2000)
    runs = {name: partial(model.fit, p.X, p.y) for name, model in models.items()}
    seconds, models = interleaved(runs, dict.fromkeys(runs, 1))
    for name, model in models.items():
        line(
            benchmark="budget",
            data=p.name,
            model=name,
            threads=thread_count(),
            support_vectors=int(model.support_vectors_.shape[0]),
            test_error=float(np.mean(model.predict(p.X_test) != p.y_test)),
            seconds=seconds[name],
            share_of_svc_fit=seconds[name] / seconds["svc"],
        )


if __name__ == "__main__":
    main()
