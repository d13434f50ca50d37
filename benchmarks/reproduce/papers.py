"""The experiments, in the order of the page."""

from __future__ import annotations

from benchmarks.reproduce import batch_perceptron, compressed_vectors, dekel_singer, optimally_sparse

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        optimally_sparse.EXPERIMENT,
        optimally_sparse.COVTYPE,
        batch_perceptron.EXPERIMENT,
        dekel_singer.EXPERIMENT,
        compressed_vectors.TOY,
        compressed_vectors.EXPERIMENT,
    )
}
#: those that run only by name
LONG = (optimally_sparse.COVTYPE.name,)
