"""The parameters of the estimators, each once: default, type in words, documentation, and its option on the command line.

The estimators take defaults and documentation from here, and the command line its options. Nothing here imports NumPy, so
that help is printed at once.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator; `option` is its help on the command line, after its flags where these are others."""

    default: Any
    kind: str
    text: str
    option: str = ""
    flags: tuple[str, ...] = ()


PARAMETERS: dict[str, Parameter] = {
    "budget": Parameter(
        None,
        "int, float, str or tuple of them",
        """
        What the model may cost; of a tuple all limits hold. 64: support vectors, which all classes share. 0.1: a fraction
        of those of the model that is shrunk; for three classes or more, that model has one output per class, and other
        support vectors than the full one-vs-one model of `SVC`; `compress` takes fractions of the model it is given.
        "4 KB" (B, KB, MB of 1,024): code and tables of the C that `slimsvm.export` writes, as `size` reports text and data
        after `gcc -Os` on x86-64. "20 us" (us, ms): a call of `predict` with one row, measured on this machine at the end
        of `fit`. The largest model within the budget is kept, unless a smaller one is clearly better on the validation
        rows. A budget that a single support vector exceeds raises ValueError. None: no limit.""",
        "What the model may cost: 64 support vectors, 0.1 of the full model's, '4 KB' of exported C or '20 us' for a "
        "prediction; several hold together.",
        ("--budget", "-b"),
    ),
    "precision": Parameter(
        "auto",
        '{"auto", "float32", "int16", "int8", "int4"}',
        """
        The tables that exports of the model write by default, in which a limit in bytes is counted. "auto" is float32
        without such a limit; under one, the search chooses. `model_.precision` says which it was.""",
        "Tables of exports: float32, int16, int8 or int4; auto is float32 without a limit in bytes.",
    ),
    "tolerance": Parameter(
        None,
        "float",
        """
        Keep the smallest model whose validation error is within this much of the full one's (0.005 is half a point of
        misclassified rows). The error of a regression is 1 - R^2; that of novelty detection is the mean squared distance
        of its scores to the full model's, as a share of their variance. A classifier also loses at most 5 % of the
        validation rows of any class, or one row. With `budget` too, the smallest within both. With neither, the full
        model is kept.""",
        "Smallest model within this much of the full one's error (0.005).",
        ("--tolerance", "-t"),
    ),
    "scoring": Parameter(
        None,
        "str, callable or None",
        """
        How models are compared: the name of one of scikit-learn's scorers, or a callable(estimator, X, y) -> score, as in
        `GridSearchCV`. The error on the path is then 1 - score, or -score for names with "neg_" and for callables, and
        `tolerance` is in units of the score. sample_weight and class_weight are not used. In novelty detection, y are the
        full model's predictions, +1 and -1. None: the error that `tolerance` describes.""",
    ),
    "kernel": Parameter(
        "rbf",
        '{"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "precomputed"} or callable',
        """
        A callable takes two sets of rows and returns the matrix of kernel values. With "precomputed", X is the kernel
        matrix (n, n) in fit and (m, n) in predict, and support vectors are column numbers.""",
        "One of {kernels}.",
        ("--kernel", "-k"),
    ),
    "gamma": Parameter(
        "scale",
        '{"scale", "auto"} or float',
        """
        Kernel width, as in `SVC`; but under sample_weight, "scale" uses the weighted variance, so that a row of weight 2
        is two rows.""",
        "'scale', 'auto' or a number.",
        ("--gamma", "-g"),
    ),
    "degree": Parameter(3, "int", "The degree of the poly kernel, as in `SVC`.", "Of the poly kernel."),
    "coef0": Parameter(
        0.0, "float", "The constant in the poly and sigmoid kernels, as in `SVC`.", "Of the poly and sigmoid kernels."
    ),
    "trainer": Parameter(
        "smo",
        "str, trainer or None",
        """
        A name in `slimsvm.trainers.TRAINERS`, or an instance such as `SMO(max_iter=1000)`. Of C, tol and max_iter, an
        instance keeps each value that differs from the default of its class; the others are this estimator's. "smo" is the
        exact SVM. Regression and novelty detection have it and "bsgd", which learns row by row. For classes, "sbp",
        "pegasos", "sdca" and "perceptron" trade exactness for fewer kernel evaluations; "lp" and "ramp" have other
        losses, which need fewer support vectors; "budget-l1", "budget-l2", "forgetron", "rbp" and "bsgd" keep to
        `budget` while they train, the last three also from a stream (`partial_fit`); "any-norm" takes a norm of the
        slack. Each class documents what it solves and when it stops. A setting that a trainer does not have is not
        used (a perceptron has no C). None trains
        no full model: a reducer that needs none then fits a model within `budget`, which must not be a fraction.""",
        "One of {trainers}, none. With none, the reducer finds a small model without a full one, if it can.",
    ),
    "reducer": Parameter(
        "slim",
        "str or reducer",
        """
        A name in `slimsvm.reducers.REDUCERS`, or an instance such as `Slim(steps=200, time_limit=60)`, which keeps its own
        C, tol and max_iter by the same rule. "slim" moves support vectors by gradient descent, and needs a kernel with
        gradients (linear, rbf, poly, sigmoid, laplacian); "slant-aggressive", "spsvm" and others choose them among the
        rows. When its time limit, in seconds, ends the work early, the best model found so far is kept, with a warning.
        Real targets have "slim", "spsvm", "reduced-set", "cvm", "lars", "osuna-girosi", "rsvm", "nystroem" and "prune".""",
        "The method that shrinks. One of {reducers}.",
    ),
    "tol": Parameter(
        1e-3,
        "float",
        """
        The largest violation of the optimality conditions at which training ends, as in `SVC`. Other trainers document
        what it bounds.""",
        "Stop at this violation of optimality.",
    ),
    "max_iter": Parameter(
        -1,
        "int",
        """
        The most steps of the trainer for each output of the full model (pair steps for "smo"). -1 means no limit; for "smo"
        it means 10 million or a thousand for each row, whichever is more. A fit that reaches the limit warns.""",
        "Steps of the trainer at most; -1 for no limit.",
    ),
    "time_limit": Parameter(
        None,
        "float",
        """
        The most seconds for the fit, calibration included. If the model is shrunk, training takes at most half of them. The
        best model found by then is kept, with a warning. None: no limit.""",
        "Seconds at most; the best model found by then is kept.",
    ),
    "warm_start": Parameter(
        False,
        "bool",
        """
        Whether `fit` starts training from the last one, for another C or tol, or after a time limit. Trainers of all rows
        start from its coefficients, and the number of rows must be the same; those that learn from streams make more
        passes from their last state, and settings must be the same. Shrinking and calibration start anew. Not with
        trainer=None.""",
    ),
    "checkpoint": Parameter(
        None,
        "str, path-like or (path, seconds)",
        """
        A file in which the state of a long fit is saved, every 60 seconds or as often as given. After a crash or a time
        limit, the same call of `fit` continues from it and ends with the same model as an uninterrupted fit. The file is
        deleted when the fit is complete. Rows, labels, settings and version must be the same. For the trainers "smo" and
        "sbp" and the reducer "slim".""",
        "Save the state of a long fit here; the same command goes on from it by itself.",
    ),
    "cache_mb": Parameter(512, "float", "Memory for kernel rows, in MiB.", "Memory for kernel rows, in MiB."),
    "validation_fraction": Parameter(
        0.2,
        "float",
        """
        The share of the rows, stratified by class, on which models are compared when a budget or tolerance is given. A
        class with too few rows for both parts is in both. With fewer than 1,000 validation rows, errors are averaged over
        several such folds: always for a tolerance, and for a budget if the first fold leaves it in doubt whether a smaller
        model is better.""",
    ),
    "device": Parameter(
        "cpu",
        "str",
        """
        Where rows are kept and kernels evaluated, in fit and in predict: "cpu" (compiled code on the host), "cuda" and
        "mps" (GPUs, by torch), "auto" (cuda or mps, if there is one and the work is large enough for it, else
        cpu; `device_` says which), or another name in `slimsvm.rows.homes.HOMES`.""",
        "Where to compute: cpu, cuda, mps, cupy or auto.",
    ),
    "verbose": Parameter(False, "bool", "Print how far the fit has come."),
    "random_state": Parameter(
        None,
        "int, RandomState instance or None",
        "Chooses the validation rows and seeds methods that draw at random. A number makes results repeatable.",
        "Chooses the validation rows; the same seed gives the same model.",
        ("--seed",),
    ),
    # Those of single estimators.
    "C": Parameter(
        1.0,
        "float",
        """
        Cost of a margin violation, or of an error beyond epsilon. float("inf") asks for a hard margin (C = 1e12).""",
        "Cost of a margin violation.",
        ("-C",),
    ),
    "epsilon": Parameter(
        0.1,
        "float",
        "Errors up to this size cost nothing. It is in the units of y: scale y, or epsilon.",
        "regress: errors up to this size cost nothing.",
    ),
    "nu": Parameter(
        0.5,
        "float",
        """
        The share of the training rows, above 0 and up to 1, that may be called novel; at least that share become support
        vectors.""",
        "novelty: the share of rows that may be called novel.",
    ),
    "class_weight": Parameter(None, 'dict or "balanced"', "Multiplies C by class, as in `SVC`."),
    "multiclass": Parameter(
        None,
        '{"ovr", "ovo", "dag"}',
        """
        The outputs for three classes or more: one for each class ("ovr"), or one for each pair of classes, decoded by votes
        ("ovo", as SVC does) or by a decision DAG ("dag", which uses k - 1 pairs for k classes). None is "ovo" for the
        full model and "ovr" with a budget or tolerance.""",
        "Three classes or more: an output for each class (ovr), or for each pair, decided by votes (ovo) or by a decision "
        "DAG (dag).",
    ),
    "calibration": Parameter(
        None,
        '{"sigmoid", "isotonic", "temperature", "conformal"} or None',
        """
        How scores become probabilities: "sigmoid" by Platt's method for each class, "isotonic" by rising steps (for a
        thousand rows or more), "temperature" by a softmax that keeps the order of the classes. It is fitted to scores of
        rows that the scoring model was not trained on. With it, `predict_proba` exists and `predict` returns the most
        probable class. A regression has "conformal": intervals around predictions, for `predict_interval`, from the errors
        of models that are fitted like this one to a part of the rows, on the other rows (five such models for up to 10,000
        rows, else one). None: neither.""",
        "Fit probabilities, for predict --proba. One of {calibrations}.",
    ),
    "decision_function_shape": Parameter(
        "ovr",
        '{"ovr", "ovo"}',
        """
        With three classes or more, decision_function returns a score for each class ("ovr") or each pair ("ovo"), as in
        `SVC`. With a budget or tolerance, the score of a pair is half the difference of the scores of its classes.""",
    ),
    "break_ties": Parameter(
        False,
        "bool",
        """
        Whether equal votes of the pairs of classes are decided by the scores, as in `SVC`; otherwise the first class wins.
        It matters for the full model only, since outputs for each class need no votes.""",
    ),
}


def parameter(name: str, table: dict[str, Parameter] = PARAMETERS) -> Any:
    """Return the field of a dataclass with the default of a parameter."""
    return field(default=table[name].default, metadata={"parameter": table[name]})


@dataclass_transform(eq_default=False)
def estimator(kind: type[Kind]) -> type[Kind]:
    """Make a class whose fields are its parameters, with a section on them in its docstring."""
    made = dataclass(eq=False, repr=False)(kind)
    if kind.__doc__:  # Python has no docstrings with -OO
        head, mark, rest = inspect.cleandoc(kind.__doc__).partition("Attributes\n")
        made.__doc__ = "".join([f"{head.rstrip()}\n\n{described(fields(made))}\n\n", mark, rest])  # type: ignore[arg-type]
    return made


def described(parameters: Iterable[Field[Any]]) -> str:
    """Return the section on parameters of a docstring."""
    entries = []
    for each in parameters:
        entry = each.metadata["parameter"]
        entries.append(f"{each.name} : {entry.kind}, default={entry.default!r}")
        entries.append(textwrap.indent(textwrap.dedent(entry.text).strip(), "    "))
    return "\n".join(["Parameters", "----------", *entries])
