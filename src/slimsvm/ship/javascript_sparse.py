"""The tables and functions of a JavaScript module with sparse points: nonzeros column by column, for any kind of row.

Tables are base64 of little-endian numbers, which every browser and Node decode: decimal digits would take twice as many
bytes.
"""

from __future__ import annotations

from ..goals import Decision
from .artefact import Artefact
from .javascript_pieces import OUTPUT, constants, double_tables, encoded, power
from .literals import as_float32
from .sparse import SparsePoints, own_sums, smallest

COLUMN = """\
/** The column of a feature, -1 if all points are 0 there. */
function columnOf(feature) {
  let low = 0, high = columns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (columns[middle] < feature) low = middle + 1;
    else high = middle;
  }
  return columns[low] === feature ? low : -1;
}
"""


def pieces(a: Artefact) -> list[str]:
    """Return the tables, the kernel and the outputs."""
    return [_tables(a), COLUMN, _kernel(a), _outputs(a)]


def _tables(a: Artefact) -> str:
    assert isinstance(a.points, SparsePoints)
    points = a.points.by_column()
    arrays = {
        "columns": smallest(points.columns),
        "starts": smallest(points.starts),
        "owners": smallest(points.points),
        "entriesOfPoints": as_float32(points.values, "points"),
        "own": as_float32(own_sums(a.spec, a.points), "sums of squares"),
        "coef": as_float32(a.coef, "coefficients"),
    }
    arrays |= {} if a.widths is None else {"widths": as_float32(a.widths, "widths", each=True)}
    texts = [f"const {name} = {encoded(values)};" for name, values in arrays.items()]
    return "\n".join([*texts, *double_tables(a), *constants(a), ""])


def _kernel(a: Artefact) -> str:
    """Return the function of all kernel values of a row."""
    value = a.spec.value.expression.format(exp="Math.exp", tanh="Math.tanh")
    if a.widths is not None:
        value = value.replace("* s", "* widths[j] * s")
    scale = "" if a.scaling is None else " * scale[i]"
    return f"""\
{power(a)}function evaluate(row) {{
  const sums = Float64Array.from(own), [indices, values] = entries(row);
  let total = 0;
  for (let n = 0; n < values.length; n++) {{
    const i = indices ? indices[n] : n, x = values[n]{scale};
    if (x === 0) continue;
    total += {a.spec.total.own or 0};
    const c = columnOf(i);
    if (c < 0) continue;
    for (let e = starts[c]; e < starts[c + 1]; e++) {{
      const z = entriesOfPoints[e];
      sums[owners[e]] += {a.spec.total.joint};
    }}
  }}
  return Array.from(sums, (sum, j) => {{
    const s = sum + total;
    return {value};
  }});
}}
"""


def _outputs(a: Artefact) -> str:
    """Return the function of all outputs; for a DAG, that of one output."""
    if a.decision is Decision.DAG:
        return OUTPUT
    return """\
function outputs(row) {
  const out = bias.slice();
  evaluate(row).forEach((value, j) => {
    for (let k = 0; k < out.length; k++) out[k] += value * coef[j * out.length + k];
  });
  return out;
}
"""
