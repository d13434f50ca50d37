// The trade-off: one line a method with standard errors, the full model as a dashed line, the chosen model as a ring.
/** The lowest error on a log scale, in per cent; lower ones are drawn there. */
const LEAST = 0.1;

class Chart {
  constructor(state, choose) {
    this.state = state;
    this.choose = choose;
    this.off = new Set();
    this.element = $("chart");
    this.zeros = DATA.points.some((point) => point.error === 0);
    $("log").checked = !this.zeros;
    $("across").addEventListener("change", () => this.build());
    $("log").addEventListener("change", () => this.build());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.element);
    this.toggles();
    this.build();
  }

  toggles() {
    for (const method of SHOWN_METHODS) {
      const label = make("label"), box = make("input", "", { type: "checkbox", value: method });
      box.checked = true;
      box.addEventListener("change", () => {
        this.off[box.checked ? "delete" : "add"](method);
        this.plot.setSeries(1 + SHOWN_METHODS.indexOf(method), { show: box.checked });
      });
      label.append(box, make("span", "", { class: "swatch", style: `background:var(${colorOf(method)})` }), method);
      $("methods").append(label);
    }
    if (!FULL) return;
    const key = make("span", "", { class: "key" });
    key.append(make("span", "", { class: "dashes" }), `full model, ${whole(FULL.size)} vectors`);
    $("methods").append(key);
  }

  size() {
    return { width: this.element.clientWidth, height: this.element.clientHeight };
  }

  /** Columns for uPlot: all places along x, then the errors of each method at those places. */
  columns() {
    const key = $("across").value;
    this.places = SHOWN_METHODS.map((method) =>
      DATA.points.filter((point) => point.method === method && point[key] > 0).sort((a, b) => a[key] - b[key]));
    const xs = [...new Set(this.places.flat().map((point) => point[key]))].sort((a, b) => a - b);
    if (!xs.length) xs.push(FULL?.[key] || 1);
    const at = (points) => xs.map((x) => {
      const point = points.find((other) => other[key] === x);
      return point ? this.height(point.error) : null;
    });
    return [xs, ...this.places.map(at)];
  }

  /** An error as it is drawn; a log scale has no place for 0. */
  height(error) {
    return $("log").checked ? Math.max(100 * error, LEAST) : 100 * error;
  }

  ranges(columns) {
    const xs = columns[0], x = [xs[0] / 1.25, xs[xs.length - 1] * 1.25];
    const shown = this.places.flat().concat(FULL ? [FULL] : []);
    const tops = shown.map((point) => this.height(point.error + point.se)), lows = shown.map((p) => this.height(Math.max(p.error - p.se, 0)));
    const top = Math.max(...tops, 0.2) * 1.08;
    return { x, y: $("log").checked ? [Math.min(...lows, top / 2) / 1.3, top * 1.1] : [0, top] };
  }

  build() {
    const columns = this.columns(), ranges = this.ranges(columns), logarithmic = $("log").checked;
    const across = $("across").selectedOptions[0].textContent;
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "13px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif", labelSize: 22 };
    const key = $("across").value, words = key === "bytes" ? bytes : key === "us" ? micro : whole, splits = key === "size" ? doublings : steps;
    this.plot?.destroy();
    this.plot = new uPlot({
      ...this.size(),
      padding: [10, 18, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, focus: { prox: 30 }, points: { size: 10 }, y: false },
      focus: { alpha: 0.35 },
      scales: { x: { time: false, distr: 3, log: 2, range: () => ranges.x }, y: { distr: logarithmic ? 3 : 1, log: 10, range: () => ranges.y } },
      axes: [
        { ...axis, label: across, size: 34, labelGap: 0, splits: () => splits(...ranges.x), values: (_, places) => places.map(words), filter: (_, splits) => splits },
        { ...axis, label: `${DATA.words.error}, %`, size: 48, values: (_, places) => places.map((v) => `${logarithmic && this.zeros && v <= LEAST ? "≤ " : ""}${Number(v.toPrecision(3))}`),
          ...(logarithmic ? { splits: () => steps(...ranges.y), filter: (_, splits) => splits } : {}) },
      ],
      series: [{}, ...SHOWN_METHODS.map((method) => ({
        label: method, stroke: color(colorOf(method)), width: 2, spanGaps: true, show: !this.off.has(method),
        points: { show: true, size: 7, fill: color("--card"), width: 2 },
      }))],
      hooks: { draw: [() => this.marks()], setCursor: [(plot) => this.read(plot)] },
    }, columns, this.element);
    this.plot.over.addEventListener("click", () => this.pick());
  }

  marks() {
    const { ctx, bbox } = this.plot, ratio = devicePixelRatio, key = $("across").value;
    const x = (value) => this.plot.valToPos(value, "x", true), y = (error) => this.plot.valToPos(this.height(error), "y", true);
    ctx.save();
    ctx.lineWidth = 1.5 * ratio;
    this.places.forEach((points, number) => {
      if (this.off.has(SHOWN_METHODS[number])) return;
      ctx.strokeStyle = color(colorOf(SHOWN_METHODS[number]));
      for (const point of points) this.bar(ctx, x(point[key]), y(point.error + point.se), y(Math.max(point.error - point.se, 0)), ratio);
    });
    if (FULL) {
      ctx.strokeStyle = color("--soft");
      ctx.setLineDash([6 * ratio, 5 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y(FULL.error));
      ctx.lineTo(bbox.left + bbox.width, y(FULL.error));
      ctx.stroke();
    }
    const point = this.state.point;
    if (point && point[key] > 0 && point !== FULL) {
      ctx.setLineDash([]);
      ctx.strokeStyle = color("--accent");
      ctx.lineWidth = 3 * ratio;
      ctx.beginPath();
      ctx.arc(x(point[key]), y(point.error), 9 * ratio, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.restore();
  }

  bar(ctx, x, top, bottom, ratio) {
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, bottom);
    for (const end of [top, bottom]) {
      ctx.moveTo(x - 3 * ratio, end);
      ctx.lineTo(x + 3 * ratio, end);
    }
    ctx.stroke();
  }

  /** The point next to the cursor, or null. */
  near() {
    const { left, top } = this.plot.cursor, key = $("across").value;
    if (left == null || left < 0) return null;
    let best = null, least = 45;
    this.places.forEach((points, number) => {
      if (this.off.has(SHOWN_METHODS[number])) return;
      for (const point of points) {
        const dx = this.plot.valToPos(point[key], "x") - left, dy = this.plot.valToPos(this.height(point.error), "y") - top;
        const distance = Math.hypot(dx, dy);
        if (distance < least) [best, least] = [point, distance];
      }
    });
    return best;
  }

  read() {
    if (!this.plot) return;
    const point = this.near();
    $("readout").textContent = point
      ? `${point.method}: ${whole(point.size)} vectors, ${bytes(point.bytes)}, ${micro(point.us)} µs, ${DATA.words.error} ${percent(point.error)} ± ${percent(point.se)}. Click to choose it.`
      : matchMedia("(hover: none)").matches ? "Tap a model to choose it." : "Point at a model to read it, click to choose it.";
  }

  pick() {
    const point = this.near();
    if (point) this.choose(point);
  }
}

/** Powers of two within a range, thinned out where there are many. */
function doublings(low, high) {
  const all = [];
  for (let k = Math.ceil(Math.log2(low)); 2 ** k <= high; k++) all.push(2 ** k);
  const every = Math.ceil(all.length / 9);
  return all.length ? all.filter((_, number) => number % every === 0) : [low];
}

/** 1, 2 and 5 times the powers of ten within a range. */
function steps(low, high) {
  const all = [];
  for (let k = Math.floor(Math.log10(low)); 10 ** k <= high; k++)
    for (const m of [1, 2, 5]) if (m * 10 ** k >= low && m * 10 ** k <= high) all.push(m * 10 ** k);
  return all.length ? all : [low];
}
