"""The names that options take. They are known without an import of the methods; a test compares them with the tables."""

TRAINERS = (
    "smo",
    "sbp",
    "pegasos",
    "sdca",
    "perceptron",
    "ramp",
    "lp",
    "any-norm",
    "budget-l1",
    "budget-l2",
    "forgetron",
    "rbp",
    "bsgd",
)
REDUCERS = (
    "slim",
    "slant",
    "slant-aggressive",
    "lars",
    "cvm",
    "reduced-set",
    "osuna-girosi",
    "zhan-shen",
    "rsvm",
    "spsvm",
    "cpsp",
    "csvm",
    "slmc",
    "prune",
    "nystroem",
)
KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2")
METRICS = ("fixed", "scales", "widths", "both", "projection", "auto")
EXPORTS = ("c", "onnx", "libsvm", "js", "json", "image", "arduino", "cmake")
BOARDS = ("avr", "cortex-m0", "cortex-m4")
READERS = ("c", "micropython", "rust")
CALIBRATIONS = ("sigmoid", "isotonic", "temperature")
MULTICLASS = ("ovr", "ovo", "dag")
TASKS = ("classify", "regress", "novelty")
SCALES = ("auto", "none", "standard", "minmax", "maxabs", "robust")
SPLITS = ("train", "test")


def listed(names: tuple[str, ...]) -> str:
    """Return the names as a sentence of help."""
    return f"One of {', '.join(names)}."
