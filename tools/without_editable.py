"""Import this first (`-p tools.without_editable` for pytest) to import from PYTHONPATH instead of an editable install.

The finder of an editable install comes before all folders, so that another build would be left aside in silence.
"""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
