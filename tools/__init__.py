"""What the tests and the benchmarks share and a user of the package does not need."""
