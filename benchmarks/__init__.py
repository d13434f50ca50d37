"""Benchmarks: each prints JSON lines. `python -m benchmarks` runs them all."""
