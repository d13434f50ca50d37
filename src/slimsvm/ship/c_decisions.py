"""The public functions of an exported C model, for each way from outputs to a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..goals import Decision


@dataclass(frozen=True)
class Naming:
    """The names of the functions of a row, the type of the row, and whether other functions wrap them."""

    prefix: str
    row: str = "float"
    wrapped: bool = False

    def head(self, returns: str, name: str, result: str | None = None) -> str:
        """Return the head of a function of a row `x`, with an array for its results if it has several."""
        more = "" if result is None else f", float *{result}"
        return f"{'static ' * self.wrapped}{returns} {self.prefix}_{name}(const {self.row} *x{more})"


@dataclass(frozen=True)
class Interface:
    """The public functions of a model: what they return, in words, and their source."""

    returns: str  # the type of predict
    prediction: str
    scores: str | None  # None: there is no such function
    #: whether the outputs are the scores; otherwise the function of outputs is static
    plain: bool
    #: the functions after that of the outputs
    functions: Callable[[Naming], list[str]]
    #: whether outputs are computed one by one, from the kernel values of all points
    single: bool = False
    #: what predict returns for a sparse row that is not valid
    invalid: str = "-1"

    def prototypes(self, prefix: str, *, probabilities: bool = False) -> list[str]:
        """Return the declarations of the header."""
        lines = [f"{self.returns} {prefix}_predict(const float *x);"]
        lines += [] if self.scores is None else [f"void {prefix}_scores(const float *x, float *scores);"]
        return lines + [f"void {prefix}_proba(const float *x, float *proba);"] * probabilities

    def summary(self, prefix: str, *, probabilities: bool = False) -> list[str]:
        """Return the declarations with their purpose."""
        words = [self.prediction, *([] if self.scores is None else [self.scores]), "the probability of each class"]
        lines = self.prototypes(prefix, probabilities=probabilities)
        width = max(map(len, lines))
        return [f"{line:<{width}}  {what}" for line, what in zip(lines, words, strict=False)]


def function(head: str, body: list[str]) -> str:
    """Return a function of C."""
    lines = "\n".join(f"    {line}" for line in body)
    return f"{head}\n{{\n{lines}\n}}"


LARGEST = [
    "for (int k = 1; k < CLASSES; k++)\n        if (scores[k] > scores[best])\n            best = k;",
    "return best;",
]


def _by_only_score(result: str) -> Callable[[Naming], list[str]]:
    """Return a writer of predict as an expression of the only score."""

    def functions(names: Naming) -> list[str]:
        body = ["float scores[OUTPUTS];", f"{names.prefix}_scores(x, scores);", f"return {result};"]
        return [function(names.head("int", "predict"), body)]

    return functions


def _by_largest(names: Naming) -> list[str]:
    body = ["int best = 0;", "float scores[OUTPUTS];", f"{names.prefix}_scores(x, scores);", *LARGEST]
    return [function(names.head("int", "predict"), body)]


def _value(names: Naming) -> list[str]:
    return [function(names.head("float", "predict"), ["float out[OUTPUTS];", "outputs(x, out);", "return out[0];"])]


def _counts(votes: str, output: str) -> list[str]:
    """Return statements that sum the votes of the pairs of classes, and the signed outputs of each class."""
    return [
        "for (int i = 0; i < CLASSES; i++)",
        f"    {votes}[i] = confidence[i] = 0;",
        "for (int i = 0, pair = 0; i < CLASSES; i++)",
        "    for (int j = i + 1; j < CLASSES; j++, pair++) {",
        f"        const float f = {output};",
        f"        {votes}[f > 0 ? i : j] += 1;",
        "        confidence[i] += f;",
        "        confidence[j] -= f;",
        "    }",
    ]


#: adds to votes the sums of outputs, scaled to less than half a vote
SQUEEZED = [
    "for (int k = 0; k < CLASSES; k++)",
    "    scores[k] += confidence[k] / (3 * ((confidence[k] < 0 ? -confidence[k] : confidence[k]) + 1));",
]


def _tally(names: Naming) -> str:
    """Return the function that sums the votes of the pairs of classes and the signed outputs of each class."""
    return function(
        f"static void tally(const {names.row} *x, float *votes, float *confidence)",
        ["float out[OUTPUTS];", "outputs(x, out);", *_counts("votes", "out[pair]")],
    )


def _voted_scores(names: Naming) -> str:
    """Return the function of scores: votes, with ties broken by the outputs."""
    return function(
        names.head("void", "scores", "scores"),
        ["float confidence[CLASSES];", "tally(x, scores, confidence);", *SQUEEZED],
    )


def _by_votes(names: Naming) -> list[str]:
    body = ["float scores[CLASSES], confidence[CLASSES];", "int best = 0;", "tally(x, scores, confidence);", *LARGEST]
    return [_tally(names), _voted_scores(names), function(names.head("int", "predict"), body)]


def _by_scored_votes(names: Naming) -> list[str]:
    body = ["float scores[CLASSES];", "int best = 0;", f"{names.prefix}_scores(x, scores);", *LARGEST]
    return [_tally(names), _voted_scores(names), function(names.head("int", "predict"), body)]


def _winner() -> str:
    """Return the function of the DAG: the output of the first and the last remaining class removes one of them."""
    return function(
        "static int winner(const float *values)",
        [
            "int first = 0, last = CLASSES - 1;",
            "while (first < last) {",
            "    const int pair = first * (2 * CLASSES - first - 1) / 2 + last - first - 1;",
            "    if (output(values, pair) > 0)",
            "        last--;",
            "    else",
            "        first++;",
            "}",
            "return first;",
        ],
    )


def _by_dag(names: Naming) -> list[str]:
    evaluated = ["float values[POINTS];", "evaluate(x, values);"]
    scores = [
        "float confidence[CLASSES];",
        *evaluated,
        *_counts("scores", "output(values, pair)"),
        *SQUEEZED,
        "scores[winner(values)] += CLASSES;",
    ]
    return [
        _winner(),
        function(names.head("void", "scores", "scores"), scores),
        function(names.head("int", "predict"), [*evaluated, "return winner(values);"]),
    ]


_CLASS, _EACH = "the number of the class of a row", "a score for each class, the largest wins"

INTERFACES: dict[Decision, Interface] = {
    Decision.SIGN: Interface("int", _CLASS, "one score, above 0 for class 1", True, _by_only_score("scores[0] > 0")),
    Decision.LARGEST: Interface("int", _CLASS, _EACH, True, _by_largest),
    Decision.VOTES: Interface("int", _CLASS, _EACH, False, _by_votes),
    Decision.SCORED_VOTES: Interface("int", _CLASS, _EACH, False, _by_scored_votes),
    Decision.DAG: Interface("int", _CLASS, _EACH, False, _by_dag, single=True),
    Decision.VALUE: Interface("float", "the value of a row", None, False, _value, invalid="NAN"),
    Decision.SIDE: Interface(
        "int",
        "1 for a row like the training rows, -1 for a novel one",
        "one score, below 0 for novel rows",
        True,
        _by_only_score("scores[0] >= 0 ? 1 : -1"),
        invalid="0",
    ),
}
