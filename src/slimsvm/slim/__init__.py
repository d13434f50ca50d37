"""slim, slimsvm's own method: small models whose points, coefficients and metric move together.

`method` has the settings (`Slim`), `paths` one run over growing sizes.
"""

# The table comes first: it imports `method`, which imports the base class beside the table.
from .. import reducers  # noqa: F401
