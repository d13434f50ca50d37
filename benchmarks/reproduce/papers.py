"""The experiments, in the order of the page."""

from __future__ import annotations

from benchmarks.reproduce import batch_perceptron, compressed_vectors, covtype, dekel_singer, optimally_sparse

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        optimally_sparse.EXPERIMENT,
        covtype.EXPERIMENT,
        batch_perceptron.EXPERIMENT,
        batch_perceptron.WALL_CLOCK,
        dekel_singer.EXPERIMENT,
        compressed_vectors.TOY,
        compressed_vectors.EXPERIMENT,
    )
}
#: those that run only by name
LONG = (covtype.EXPERIMENT.name, batch_perceptron.WALL_CLOCK.name)
