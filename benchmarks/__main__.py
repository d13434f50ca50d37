"""Run benchmarks, each in a process of its own, one after the other: those named, or all of `BENCHMARKS`.

python -m benchmarks                                   all
python -m benchmarks exact budget                      two of them
python -m benchmarks frontier --methods slim           options go to the benchmarks named
"""

import subprocess
import sys
from itertools import takewhile

BENCHMARKS = ("memory", "exact", "budget", "online", "ship", "machines")

if __name__ == "__main__":
    names = list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
    options = sys.argv[1 + len(names) :]
    if options and not names:
        sys.exit(__doc__)
    for name in names or BENCHMARKS:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=True)
