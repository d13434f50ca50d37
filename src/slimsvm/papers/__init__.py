"""Published methods that are not on the main road: one idea, one file, with its solver.

The tables of `trainers` and `reducers` list them; import the classes from there.
"""

# The tables come first: they import the modules of this package, which import frames and bases beside the tables.
from .. import reducers, trainers  # noqa: F401
