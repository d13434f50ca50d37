"""The papers' experiments with the papers' parameters, on the papers' data: one file a paper.

python -m benchmarks.reproduce                            all but covtype, then the page: `make reproduce`
python -m benchmarks.reproduce dekel_singer               one experiment
python -m benchmarks.reproduce optimally_sparse --cells 2 the next two cells that have not been run
python -m benchmarks.reproduce page                       docs/results/index.md and its figures from the rows that there are

python -m benchmarks.reproduce --folder rows --rows-only  into another folder, without the page: needs no matplotlib

Cells run in as many processes as there are cores (--jobs), one thread each. Each row has the commit that made it, from git
or, in a copy without its repository, from the variable REPRODUCE_COMMIT.
"""
