"""Run the command line with `python -m slimsvm`."""

from .studio.cli import main

if __name__ == "__main__":
    main()
