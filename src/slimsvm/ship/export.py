"""The table of exporters, and the function that writes their files.

An exporter is a frozen dataclass of settings with an `ending` and `render(artefact, stem)`, which returns the bytes of its
files by ending, or by their place in a folder if the ending is empty. A new one is a file with such a class and a line in
`EXPORTERS`.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..files.container import write_together
from .c import CExporter
from .image import ImageExporter
from .javascript import JavaScriptExporter
from .json import JSONExporter
from .libsvm import LIBSVMExporter
from .onnx import ONNXExporter
from .packages import ArduinoExporter, CMakeExporter
from .source import artefact_of

EXPORTERS: dict[str, Any] = {
    "c": CExporter,
    "onnx": ONNXExporter,
    "libsvm": LIBSVMExporter,
    "js": JavaScriptExporter,
    "json": JSONExporter,
    "image": ImageExporter,
    "arduino": ArduinoExporter,
    "cmake": CMakeExporter,
}
#: other endings of targets
ALSO = {".js": "js"}
#: TypeScript looks for the types of a .mjs file and of a .js file in different places
TYPES = {(".js", ".d.mts"): ".d.ts"}


def export(
    model: Any, path: str | os.PathLike[str], target: str | None = None, *, force: bool = False, **settings: Any
) -> list[Path]:
    """Write a fitted model as source or in another format, completely or not at all.

    Parameters
    ----------
    model : estimator
        A fitted SlimSVC, SlimSVR, SlimOneClassSVM, SVC, NuSVC or another model that `compress` takes, or a Pipeline of
        scalers or a TransformedTargetRegressor with one of them in it.
    path : path
        Where to write. The ending names the target: .c, .mjs or .js, .onnx, .libsvm, .json, .bin. C has a .h file beside
        it, JavaScript its types. Targets "arduino" and "cmake" write a folder.
    target : {"c", "js", "onnx", "libsvm", "json", "image", "arduino", "cmake"}, default=None
        The target, where the ending does not name it.
    force : bool, default=False
        Replace files that exist.
    **settings : settings of the exporter
        C and images: `precision` ("float32", "int16", "int8" or "int4"). C: `integers` (no floating point), `rows` (raw
        rows like those to predict, whose range integers keep), `limit` (features are within it, after scaling) and
        `update` (a function that learns from a row, for models of trainer="bsgd", "forgetron" or "rbp").
        ONNX: `precision` ("float32" or "float64") and `flavor` ("plain", or "svm" for one SVM operator). Those of each
        target are the fields of its class in `slimsvm.ship.export.EXPORTERS`.

    Returns
    -------
    list of Path
        The files written.

    Examples
    --------
    >>> import tempfile, slimsvm
    >>> from sklearn.datasets import load_iris
    >>> model = slimsvm.SlimSVC(4, random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in slimsvm.export(model, f"{folder}/iris.c", precision="int8")]
    ['iris.c', 'iris.h']
    """
    path = Path(path)
    exporter = make_exporter(target_of(path, target), settings)
    rendered = exporter.render(artefact_of(model), path.stem)
    if path.suffix.lower() != exporter.ending and path.suffix.lower() in rendered:
        raise ValueError(
            f"cannot export to {path.name!r}: this export writes {sorted(rendered)}, and its main file must not end in "
            f"{path.suffix!r}; name it {path.with_suffix(exporter.ending).name!r}"
        )
    files = {place: [data] for place, data in _places(path, exporter, rendered).items()}
    taken = [str(file) for file in files if file.exists()]
    if taken and not force:
        raise FileExistsError(
            f"{', '.join(taken)} exists already; give another name, or force=True (--force) to replace it"
        )
    for folder in {file.parent for file in files} if not exporter.ending else ():
        folder.mkdir(parents=True, exist_ok=True)
    write_together({Path(os.path.realpath(file)): pieces for file, pieces in files.items()})
    return list(files)


def _places(path: Path, exporter: Any, rendered: dict[str, bytes]) -> dict[Path, bytes]:
    """Return the files by their paths; an exporter without an ending writes a folder."""
    if not exporter.ending:
        return {path / place: data for place, data in rendered.items()}
    rendered = {TYPES.get((path.suffix, ending), ending): data for ending, data in rendered.items()}
    return {
        path if ending == exporter.ending else path.with_name(path.stem + ending): data for ending, data in rendered.items()
    }


def target_of(path: Path, target: str | None) -> str:
    """Return the given target, or the one of the path's ending."""
    endings = {exporter.ending: name for name, exporter in EXPORTERS.items() if exporter.ending} | ALSO
    if target is None and path.suffix not in endings:
        raise ValueError(
            f"no target has the ending of {path.name!r}; name the target, one of {sorted(EXPORTERS)}, or an output that "
            f"ends in one of {sorted(endings)}"
        )
    target = target or endings[path.suffix]
    if target not in EXPORTERS:
        raise ValueError(f"unknown target {target!r}; there are {sorted(EXPORTERS)}")
    return target


def make_exporter(target: str, settings: dict[str, Any]) -> Any:
    """Return the exporter of that name with these settings."""
    kind = EXPORTERS[target]
    known = [field.name for field in fields(kind)]
    unknown = sorted(settings.keys() - set(known))
    if unknown:
        raise ValueError(
            f"the {target} export has no setting {', '.join(unknown)}; its settings: {', '.join(known) or 'none'}"
        )
    return kind(**settings)
