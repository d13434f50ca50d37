"""Run every benchmark, each in a process of its own, one after the other."""

import subprocess
import sys

BENCHMARKS = ("memory", "exact", "budget", "online", "speed", "ship")

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
