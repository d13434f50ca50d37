// Exact Shapley values of a row, from the JSON export of a model; the formula is explained in slimsvm's ship/shapley.py.
const DISTANCE = { rbf: (u) => u * u, laplacian: Math.abs };

/** {values: for each feature its share of each output, base: the outputs without any feature}; null for other kernels. */
function shapley(model, row) {
  const { kernel, points, coef, bias, scaling: s, widths } = model, distance = DISTANCE[kernel.name];
  if (!distance || !Array.isArray(points) || ["ovo", "dag"].includes(model.goal.name)) return null;
  const x = s ? row.map((value, j) => Math.min(Math.max((value - s.centre[j]) * s.scale[j], s.low[j] ?? -Infinity), s.high[j] ?? Infinity)) : row;
  const values = x.map(() => bias.map(() => 0)), rule = gaussLegendre(Math.ceil(x.length / 2));
  points.forEach((point, i) => {
    const gamma = kernel.gamma * (widths?.[i] ?? 1);
    const losses = point.map((z, j) => -Math.expm1(-gamma * distance(x[j] - z)));
    const slopes = losses.map(() => 0);
    for (const [t, weight] of rule) {
      const product = losses.reduce((all, loss) => all * (1 - t * loss), weight);
      losses.forEach((loss, j) => { slopes[j] += product / (1 - t * loss); });
    }
    losses.forEach((loss, j) => coef[i].forEach((c, q) => { values[j][q] -= c * loss * slopes[j]; }));
  });
  return { values, base: bias.map((b, q) => coef.reduce((sum, c) => sum + c[q], b)) };
}

/** Nodes and weights on (0, 1), by Newton's method on the Legendre polynomial. */
function gaussLegendre(n) {
  return Array.from({ length: n }, (_, i) => {
    let u = Math.cos(Math.PI * (i + 0.75) / (n + 0.5)), slope = 1;
    for (let step = 0; step < 100; step++) {
      let [before, now] = [1, u];
      for (let k = 2; k <= n; k++) [before, now] = [now, ((2 * k - 1) * u * now - (k - 1) * before) / k];
      slope = n === 1 ? 1 : n * (u * now - before) / (u * u - 1);
      const move = now / slope;
      u -= move;
      if (Math.abs(move) < 1e-15) break;
    }
    return [(1 + u) / 2, 1 / ((1 - u * u) * slope * slope)];
  });
}
