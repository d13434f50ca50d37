"""The endings of file names: what is written under which name, and names of other formats, which are not read as rows.

The command line checks names before hours of work, so this needs no NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

#: what is written, and the endings that its name may have; "" is a name without one
WRITTEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "a model": (".slim",),
        "a page": (".html", ".htm"),
        "a table of runs": (".csv",),
        "predictions, one a line": ("", ".txt", ".csv"),
    }
)
#: endings of other formats of models, and how to get them
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys((".c", ".h", ".onnx", ".mjs", ".js", ".libsvm", ".json"), "for {name}, export {like} then")
    | dict.fromkeys((".pkl", ".pickle", ".joblib"), "for a pickle, use joblib.dump in Python")
)
#: endings that rows never have; other unknown ones are read as LIBSVM text, whose files have any ending or none
NO_ROWS = (
    *(".xlsx", ".xls", ".xlsm", ".ods", ".json", ".jsonl", ".arff", ".feather", ".h5", ".hdf5", ".mat", ".zip", ".tar"),
    *(".pkl", ".pickle", ".joblib", ".slim", ".onnx", ".c", ".h", ".js", ".mjs", ".html", ".htm", ".md", ".py", ".pdf"),
)


def check_written(what: str, path: Path) -> None:
    """Raise ValueError for the name of a file whose ending is not one of `what` is written to it."""
    ending, allowed = path.suffix.lower(), WRITTEN[what]
    if ending not in allowed:
        like = f"{path.stem or 'output'}{max(allowed, key=len)}"
        other = ELSEWHERE.get(ending, "").format(name=path.name, like=like) if what == "a model" else ""
        named = " or ".join(name or "nothing" for name in allowed)
        advice = "; ".join([f"name it {like!r}", *[other] * bool(other)])
        raise ValueError(f"{path.name!r} does not end in {named}, as the file of {what} does; {advice}")


def check_rows_ending(ending: str) -> None:
    """Raise ValueError for an ending that rows never have."""
    if ending in NO_ROWS:
        raise ValueError(
            f"{ending} is no format of rows here; the formats are .csv, .tsv, .npz, .npy, .parquet and LIBSVM text (text "
            "also packed as .gz, .bz2 or .xz). Save a spreadsheet or JSON as CSV"
        )
