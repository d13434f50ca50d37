"""JavaScript: one ES module without dependencies, for browsers and Node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

from ..calibration import LEAST, Isotonic, Temperature
from ..goals import Decision
from ..kernels.spec import spec_of
from . import javascript_sparse, javascript_words
from .artefact import Artefact
from .javascript_pieces import ALL, DECODE, HEAD, OUTPUT, ROWS, constants, double_tables, power
from .javascript_types import declarations
from .literals import as_float32, label_literals, listing, table
from .sparse import SparsePoints

# Pieces of the module that choose a class by its outputs.
LARGEST = """\
function largest(values) {
  return values.reduce((best, value, k) => (value > values[best] ? k : best), 0);
}
"""
TALLY = """\
/** Votes of the pairs of classes, and the sum of outputs for and against each class. */
function tally(out) {
  const votes = new Array(classes.length).fill(0), confidence = new Array(classes.length).fill(0);
  let pair = 0;
  for (let i = 0; i < classes.length; i++) {
    for (let j = i + 1; j < classes.length; j++, pair++) {
      votes[out[pair] > 0 ? i : j] += 1;
      confidence[i] += out[pair];
      confidence[j] -= out[pair];
    }
  }
  return [votes, confidence];
}
"""
WINNER = """\
/** The class of the DAG: the output of the first and the last remaining class removes one of them, until one is left. */
function winner(values) {
  let first = 0, last = classes.length - 1;
  while (first < last) {
    const pair = (first * (2 * classes.length - first - 1)) / 2 + last - first - 1;
    if (output(values, pair) > 0) last--;
    else first++;
  }
  return first;
}
"""
VOTE_SCORES = """\
  const [votes, confidence] = tally(outputs(row));
  return votes.map((count, k) => count + confidence[k] / (3 * (Math.abs(confidence[k]) + 1)));"""

DAG_SCORES = """\
  const values = evaluate(row), [votes, confidence] = tally(bias.map((_, k) => output(values, k)));
  const found = votes.map((count, k) => count + confidence[k] / (3 * (Math.abs(confidence[k]) + 1)));
  found[winner(values)] += classes.length;
  return found;"""


@dataclass(frozen=True)
class Functions:
    """The functions of a module: what they return, in words, and their JavaScript."""

    meaning: str  # of the prediction
    prediction: str
    scores_are: str | None  # None: there is no such function
    scores: str = "  return outputs(row);"
    helpers: tuple[str, ...] = ()


_LABEL, _EACH = "the label of an array of numbers", "a score for each class"

FUNCTIONS: dict[Decision, Functions] = {
    Decision.SIGN: Functions(_LABEL, "classes[Number(outputs(row)[0] > 0)]", "[score], above 0 for the second class"),
    Decision.LARGEST: Functions(_LABEL, "classes[largest(outputs(row))]", _EACH, helpers=(LARGEST,)),
    Decision.VOTES: Functions(_LABEL, "classes[largest(tally(outputs(row))[0])]", _EACH, VOTE_SCORES, (LARGEST, TALLY)),
    Decision.SCORED_VOTES: Functions(_LABEL, "classes[largest(scores(row))]", _EACH, VOTE_SCORES, (LARGEST, TALLY)),
    Decision.DAG: Functions(_LABEL, "classes[winner(evaluate(row))]", _EACH, DAG_SCORES, (TALLY, WINNER)),
    Decision.VALUE: Functions("the value of an array of numbers", "outputs(row)[0]", None),
    Decision.SIDE: Functions(
        "1 for an array of numbers like the training rows, -1 for a novel one",
        "outputs(row)[0] >= 0 ? 1 : -1",
        "[score], below 0 for novel rows",
    ),
}


@dataclass(frozen=True)
class JavaScriptExporter:
    """A module that exports features, classes, scores(row) and predict(row); tables are Float32Array, sums double.

    `featureNames` are the names of the columns that the model was trained on, if it knows them. Types for TypeScript are
    in a file beside it.

    Regression and novelty detection have no classes, and a regressor has no scores.
    """

    ending: ClassVar[str] = ".mjs"

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the module and the types of what it exports."""
        spec_of(artefact.kernel, "the JavaScript export")
        a = artefact.compact()
        decision = _decision(a) if a.calibration is None else _probable_decision(a)
        sparse = isinstance(a.points, SparsePoints)
        own = javascript_sparse.pieces(a) if sparse else [_tables(a), ALL, _kernel(a), _outputs(a)]
        rows = [ROWS] if a.words is None else javascript_words.pieces(a.words)
        pieces = [_head(a, stem), *[DECODE] * (sparse or a.words is not None), *rows, *own, decision]
        return {self.ending: "\n".join(pieces).encode(), ".d.mts": declarations(a, stem).encode()}


def _head(a: Artefact, stem: str) -> str:
    functions, name = FUNCTIONS[a.decision], json.dumps(stem)[1:-1]
    names = "predict" if functions.scores_are is None else "predict, scores"
    names += "" if a.calibration is None else ", proba"
    lines = [
        f"// {name}: {a.summary}.",
        f"// Written by slimsvm {version('slimsvm')}; do not edit.",
        "//",
        f'//   import {{ {names} }} from "./{name}.mjs";',
        f"//   predict(row)  {functions.meaning}",
    ]
    lines += [] if functions.scores_are is None else [f"//   scores(row)   {functions.scores_are}"]
    lines += [] if a.calibration is None else ["//   proba(row)    the probability of each class; the largest is predicted"]
    lines += [*(HEAD if a.words is None else javascript_words.HEAD), "", f"export const features = {a.features};"]
    if a.names:
        lines += ["export const featureNames = [", f"    {listing(map(json.dumps, a.names))}", "];"]
    if a.classes.size:
        lines += ["export const classes = [", f"    {listing(label_literals(a.classes, json.dumps))}", "];"]
    return "\n".join([*lines, ""])


def _tables(a: Artefact) -> str:
    arrays = {"points": as_float32(a.table, "points"), "coef": as_float32(a.coef, "coefficients")}
    arrays |= {} if a.widths is None else {"widths": as_float32(a.widths, "widths", each=True)}
    texts = [f"const {name} = new Float32Array([\n{table(values)}\n]);" for name, values in arrays.items()]
    return "\n".join([*texts, *double_tables(a), *constants(a), ""])


def _kernel(a: Artefact) -> str:
    value = a.spec.value.expression.format(exp="Math.exp", tanh="Math.tanh")
    if a.widths is not None:
        value = value.replace("* s", "* widths[start / features] * s")
    return f"""\
{power(a)}function kernel(row, start) {{
  let s = 0;
  for (let i = 0; i < features; i++) {{
    const x = row[i], z = points[start + i];
    s += {a.spec.total.term};
  }}
  return {value};
}}
"""


def _outputs(a: Artefact) -> str:
    """Return the function of all outputs; for a DAG, those of the kernel values and of one output."""
    prepare = "  row = numbers(row);\n"
    if a.scaling is not None:
        scaled = "(x - centre[i]) * scale[i]"
        clipped = f"Math.min(Math.max({scaled}, low[i]), high[i])" if a.scaling.clips else scaled
        prepare = f"  row = Float64Array.from(numbers(row), (x, i) => {clipped});\n"
    if a.decision is Decision.DAG:
        return f"""\
function evaluate(row) {{
{prepare}  const values = [];
  for (let start = 0; start < points.length; start += features) values.push(kernel(row, start));
  return values;
}}

{OUTPUT}"""
    return f"""\
function outputs(row) {{
{prepare}  const out = bias.slice();
  for (let start = 0, c = 0; start < points.length; start += features) {{
    const value = kernel(row, start);
    for (let k = 0; k < out.length; k++) out[k] += value * coef[c++];
  }}
  return out;
}}
"""


def _decision(a: Artefact) -> str:
    """Return `predict` and `scores`, with the functions they call."""
    functions = FUNCTIONS[a.decision]
    pieces = [*functions.helpers, _exported("predict", f"  return {functions.prediction};")]
    return "\n".join(pieces if functions.scores_are is None else [*pieces, _exported("scores", functions.scores)])


#: the probability of score k before the sum is made 1, for each kind of map
PROBABILITIES = {
    "sigmoid": "1 / (1 + Math.exp(-(slope[k] * score + shift[k])))",
    "isotonic": "curve(score, k)",
    "temperature": "1 / (1 + Math.exp(-score / TEMPERATURE))",
}
SOFTMAX = """\
  const top = Math.max(...given);
  const found = given.map((score) => Math.exp((score - top) / TEMPERATURE));"""
CURVE = """\
function curve(score, k) {
  const last = knotStarts[k + 1] - 1;
  let i = knotStarts[k];
  if (!(score > knotScores[i])) return knotValues[i];
  while (i < last && score >= knotScores[i + 1]) i++;
  if (i === last) return knotValues[last];
  const share = (score - knotScores[i]) / (knotScores[i + 1] - knotScores[i]);
  return knotValues[i] + share * (knotValues[i + 1] - knotValues[i]);
}
"""


def _map_constants(calibration: Any) -> str:
    """Return the constants of a map to probabilities."""
    if isinstance(calibration, Temperature):
        return f"const TEMPERATURE = {calibration.temperature!r};\n"
    names = {"slope": "slope", "shift": "shift"}
    if isinstance(calibration, Isotonic):
        names = {"scores": "knotScores", "values": "knotValues", "starts": "knotStarts"}
    lines = [
        f"const {ours} = [\n    {listing(map(repr, getattr(calibration, name).tolist()))}\n];"
        for name, ours in names.items()
    ]
    return "\n".join([*lines, ""])


def _probable_decision(a: Artefact) -> str:
    """Return `scores`, `proba` and `predict` of a model with probabilities."""
    functions, calibration, two = FUNCTIONS[a.decision], a.calibration, a.classes.size == 2
    assert calibration is not None
    softmax = isinstance(calibration, Temperature) and not two
    found = SOFTMAX if softmax else f"  const found = given.map((score, k) => {PROBABILITIES[calibration.name]});"
    both = "  return [1 - inside[0], inside[0]];"
    each = "  const sum = inside.reduce((total, p) => total + p, 0);\n  return inside.map((p) => p / sum);"
    body = f"""\
  const given = Array.from(scores(row));
{found}
  const inside = found.map((p) => Math.min(Math.max(p, {LEAST!r}), 1 - {LEAST!r}));
{both if two else each}"""
    helpers = dict.fromkeys([LARGEST, *functions.helpers])
    return "\n".join(
        [
            _map_constants(calibration),
            *helpers,
            *([CURVE] if isinstance(calibration, Isotonic) else []),
            _exported("scores", functions.scores),
            _exported("proba", body),
            _exported("predict", "  return classes[largest(proba(row))];"),
        ]
    )


def _exported(name: str, body: str) -> str:
    return f"export function {name}(row) {{\n{body}\n}}\n"
