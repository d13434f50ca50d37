// The JavaScript export, for every kernel and layout: `javascript.py` writes the tables and constants of a model in front of
// this text, keeps the branches of #if that the model needs, and puts expressions in the place of TERM, JOINT_TERM, OWN_TERM
// and VALUE (`kernels.spec`), SCALED, PROBABILITY and the words of a text . Node checks it as it is.

//#if TEXT
/** The numbers of the features in a text, and their values. */
function entriesOfText(text) {
  if (typeof text !== "string") throw new TypeError(`a row is a text, not a ${typeof text}`);
  const words = WORDS_OF_TEXT, counts = new Map();
  for (let size = LOW_RUN; size <= HIGH_RUN; size++) {
    for (let first = 0; first + size <= words.length; first++) {
      const i = vocabulary.get(words.slice(first, first + size).join(" "));
      if (i !== undefined) counts.set(i, COUNTED);
    }
  }
  const indices = [...counts.keys()], values = Array.from(counts, ([i, count]) => WEIGHTED);
//#if NORM
  const sum = values.reduce((total, x) => total + SIZE_OF, 0), size = ROOT || 1;
  return [indices, values.map((x) => x / size)];
//#else
  return [indices, values];
//#endif
}
//#elif TABLE
/** The prepared numbers of a row of the table. */
const entriesOfTable = (row) => [null, prepare(row)];
//#else
const isList = (x) => typeof x === "object" && x !== null && Number.isInteger(x.length);

/** The numbers of the features that a row lists, null for all of them, and their values. */
function entries(row) {
  if (row instanceof Map) row = { indices: [...row.keys()], values: [...row.values()] };
  const [indices, values] = isList(row) ? [null, row] : [row?.indices, row?.values];
  if (!isList(values) || (indices !== null && !isList(indices))) {
    throw new TypeError("a row is an array of numbers, a Map, or an object with the arrays indices and values");
  }
  const count = indices === null ? features : indices.length;
  if (values.length !== count) throw new RangeError(`a row of ${count} features has ${values.length} values`);
  let sorted = true;
  for (let n = 0; n < count; n++) {
    const i = indices === null ? n : indices[n], x = values[n];
    if (!Number.isInteger(i) || i < 0 || i >= features) throw new RangeError(`there is no feature ${i} of ${features}`);
    if (typeof x !== "number") throw new TypeError(`feature ${i} is a ${typeof x}, not a number`);
    if (!Number.isFinite(x)) throw new RangeError(`feature ${i} is ${x}, not a finite number`);
    sorted &&= n === 0 || i > (indices === null ? n - 1 : indices[n - 1]);
  }
  if (!sorted && new Set(Array.from(indices)).size < count) throw new RangeError("a row lists a feature twice");
  return [indices, values];
}
//#endif

//#if CODED
const round = Math.fround;

/** The numbers of codes: their steps above the low end of their column, or of their row. */
function expand(codes, size, low, step, pairOf) {
  const code = (e) => (BITS === 4 ? (codes[e >> 1] >> (4 * (e % 2))) & 15 : codes[e]);
  return Float32Array.from({ length: size }, (_, e) => low[pairOf(e)] + Math.fround(step[pairOf(e)] * code(e)));
}

/** exp(x) in float32: a polynomial about the nearest power of 2, as exported C computes it. */
function exponential(x) {
  x = x > -87 ? Math.min(x, 88) : -87;
  const n = Math.trunc(round(round(x * round(1.44269504)) + (x < 0 ? -0.5 : 0.5)));
  const r = round(round(x - round(n * round(0.693359375))) - round(n * round(-2.1219444e-4)));
  const sum = [1 / 120, 1 / 24, 1 / 6, 0.5, 1, 1].reduce((p, c) => round(round(p * r) + round(c)), round(1 / 720));
  return round(sum * 2 ** n);
}

function tangent(x) {
  const share = exponential(-2 * Math.abs(x)), size = round(round(1 - share) / round(1 + share));
  return x < 0 ? -size : size;
}

//#endif
//#if POWER
function power(base) {
  let p = 1;
  for (let n = DEGREE; n > 0; n >>= 1, base = ROUND(base * base)) if (n % 2) p = ROUND(p * base);
  return p;
}
//#endif

//#if SPARSE
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

/** The kernel values of a row and all points. */
function evaluateSparse(row) {
  const sums = Float64Array.from(own), [indices, values] = entries(row);
  let total = 0;
  for (let n = 0; n < values.length; n++) {
    const i = indices ? indices[n] : n, x = SPARSE_VALUE;
    if (x === 0) continue;
    total += OWN_TERM;
    const c = columnOf(i);
    if (c < 0) continue;
    for (let e = starts[c]; e < starts[c + 1]; e++) {
      const z = entriesOfPoints[e];
      sums[owners[e]] += JOINT_TERM;
    }
  }
  return Array.from(sums, (sum, j) => {
    const s = sum + total;
    return VALUE;
  });
}
//#else
/** All numbers of a row; features that it does not list are 0. */
function numbers(row) {
  const [indices, values] = entries(row);
  if (indices === null) return values;
  const all = new Float64Array(features);
  for (let n = 0; n < indices.length; n++) all[indices[n]] = values[n];
  return all;
}

function kernel(row, start) {
  let s = 0;
  for (let i = 0; i < COLUMNS; i++) {
    const x = row[i], z = points[start + i];
    s = ROUND(s + TERM);
  }
  return VALUE;
}

/** The kernel values of a row and all points. */
function evaluate(row) {
//#if SCALED_ROWS
  row = Float64Array.from(numbers(row), (x, i) => SCALED);
//#else
  row = ALL_NUMBERS;
//#endif
//#if PROJECTED
  const given = row;
  row = PROJECTED_ROW;
  for (let i = 0; i < features; i++) {
    for (let r = 0; r < COLUMNS; r++) row[r] += ROUND(given[i] * projection[i * COLUMNS + r]);
  }
//#endif
  const values = [];
  for (let start = 0; start < points.length; start += COLUMNS) values.push(kernel(row, start));
  return values;
}
//#endif

//#if DECISION == DAG
function output(values, k) {
  return values.reduce((sum, value, j) => ROUND(sum + ROUND(value * coef[j * bias.length + k])), bias[k]);
}
//#else
function outputs(row) {
  const out = bias.slice();
  evaluate(row).forEach((value, j) => {
    for (let k = 0; k < out.length; k++) out[k] = ROUND(out[k] + ROUND(value * coef[j * out.length + k]));
  });
  return out;
}
//#endif

//#if MAP || DECISION == LARGEST || DECISION == VOTES || DECISION == SCORED_VOTES
function largest(values) {
  return values.reduce((best, value, k) => (value > values[best] ? k : best), 0);
}
//#endif

//#if TALLIED
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
//#endif

//#if DECISION == DAG
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
//#endif

//#if MAP == ISOTONIC
function curve(score, k) {
  const last = knotStarts[k + 1] - 1;
  let i = knotStarts[k];
  if (!(score > knotScores[i])) return knotValues[i];
  while (i < last && score >= knotScores[i + 1]) i++;
  if (i === last) return knotValues[last];
  const share = (score - knotScores[i]) / (knotScores[i + 1] - knotScores[i]);
  return knotValues[i] + share * (knotValues[i + 1] - knotValues[i]);
}
//#endif

//#if DECISION != VALUE && DECISION != VALUES
export function scores(row) {
//#if DECISION == DAG
  const values = evaluate(row);
//#endif
//#if TALLIED
  const [votes, confidence] = tally(PAIR_OUTPUTS);
  const found = votes.map((count, k) => count + confidence[k] / (3 * (Math.abs(confidence[k]) + 1)));
//#if DECISION == DAG
  found[winner(values)] += classes.length;
//#endif
  return found;
//#else
  return outputs(row);
//#endif
}
//#endif

//#if MAP
export function proba(row) {
  const given = Array.from(scores(row));
//#if MAP == SOFTMAX
  const top = Math.max(...given);
//#endif
  const found = given.map((score, k) => PROBABILITY);
  const inside = found.map((p) => Math.min(Math.max(p, LEAST), 1 - LEAST));
//#if TWO
  return [1 - inside[0], inside[0]];
//#else
  const sum = inside.reduce((total, p) => total + p, 0);
  return inside.map((p) => p / sum);
//#endif
}
//#endif

export function predict(row) {
//#if MAP
  return classes[largest(proba(row))];
//#elif DECISION == SIGN
  return classes[Number(outputs(row)[0] > 0)];
//#elif DECISION == LARGEST
  return classes[largest(outputs(row))];
//#elif DECISION == VOTES
  return classes[largest(tally(outputs(row))[0])];
//#elif DECISION == SCORED_VOTES
  return classes[largest(scores(row))];
//#elif DECISION == DAG
  return classes[winner(evaluate(row))];
//#elif DECISION == VALUES
  return outputs(row);
//#elif DECISION == SIDE
  return outputs(row)[0] >= 0 ? 1 : -1;
//#else
  return outputs(row)[0];
//#endif
}
