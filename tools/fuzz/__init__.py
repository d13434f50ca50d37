"""Fuzz every reader of files: `python -m tools.fuzz READER --seconds N`."""
