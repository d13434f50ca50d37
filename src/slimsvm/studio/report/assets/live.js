// The model at the chosen size, run in the page: the module of the JavaScript export, as it is downloaded.
class Live {
  constructor() {
    this.sample = -1;
    this.cells = [];
    $("next").addEventListener("click", () => this.nextSample());
    $("next").disabled = !DATA.samples.length;
    $("clear").addEventListener("click", () => this.set(new Array(DATA.features).fill(0)));
    $("row").addEventListener("input", () => { $("truth").textContent = ""; this.run(); });
    if (DATA.image) this.makeGrid();
    $("names").textContent = DATA.names.length ? `In this order: ${DATA.names.join(", ")}` : "";
    this.nextSample();
  }

  /** Load a model, or say that the page has none at this size; a load that a later one overtakes is dropped. */
  async use(point) {
    const packed = DATA.models[point.key]?.[".mjs"];
    this.wanted = point;
    const text = packed && new TextDecoder().decode(await unpacked(packed));
    const module = text ? await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`) : null;
    if (this.wanted !== point) return;
    this.module = module;
    this.parameters = await parametersOf(point);
    if (this.wanted !== point) return;
    this.run();
    $("speed").textContent = "";
    if (module) this.time();
    document.body.dataset.live = module ? point.key : "none";
  }

  numbers() {
    const words = $("row").value.split(/[\s,;]+/).filter(Boolean), numbers = words.map(Number);
    const bad = words.find((_, i) => !Number.isFinite(numbers[i]));
    if (bad !== undefined) return [null, `“${bad}” is not a number.`];
    if (numbers.length !== DATA.features) return [null, `A row has ${DATA.features} numbers; here are ${numbers.length}.`];
    return [numbers, ""];
  }

  set(row, truth = "") {
    $("row").value = row.join(", ");
    $("truth").textContent = truth;
    this.run();
  }

  nextSample() {
    if (!DATA.samples.length) return this.set(new Array(DATA.features).fill(0));
    this.sample = (this.sample + 1) % DATA.samples.length;
    const { row, label } = DATA.samples[this.sample];
    const words = { classify: "Its label: ", regress: "Its target: ", novelty: "The full model says: " }[DATA.task];
    this.set(row, label && words + label);
  }

  run() {
    const [row, problem] = this.numbers();
    $("problem").textContent = problem || (this.module === null ? "This model does not run in the page: its files are not in it. Choose another one." : "");
    if (row && this.cells.length) row.forEach((value, i) => this.ink(i, value));
    if (!row || !this.module) {
      $("label").textContent = "–";
      $("scores").tBodies[0].replaceChildren();
      $("why").hidden = true;
      return;
    }
    const scores = this.module.scores ? [...this.module.scores(row)] : [], label = named(this.module.predict(row));
    $("label").textContent = label;
    document.body.dataset.scores = JSON.stringify(scores);
    this.bars(scores, label);
    this.explain(row, scores);
  }

  /** The Shapley values of the row, for the score of the class that is predicted, or the only output. */
  explain(row, scores) {
    const parts = this.parameters && shapley(this.parameters, row);
    $("why").hidden = !parts;
    if (!parts) return;
    const column = Math.max(0, scores.indexOf(Math.max(...scores))), values = parts.values.map((outputs) => outputs[column]);
    document.body.dataset.shapley = JSON.stringify(values);
    const names = this.parameters.names ?? values.map((_, i) => `feature ${i + 1}`), whole = values.reduce((a, b) => a + b, parts.base[column]);
    $("why-help").textContent = `Shapley values: from ${parts.base[column].toFixed(2)}, the score without any feature, to ${whole.toFixed(2)}.`;
    const order = values.map((_, i) => i).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, 12);
    const most = Math.max(...values.map(Math.abs), 1e-9);
    $("parts").tBodies[0].replaceChildren(...order.map((i) => barRow(names[i], values[i], most, true)));
  }

  /** Measure predictions, when the compiler of the browser has seen some. */
  time() {
    const row = this.numbers()[0] ?? new Array(DATA.features).fill(0), batch = () => { for (let i = 0; i < 50; i++) this.module.predict(row); };
    const start = performance.now();
    let best = Infinity;
    for (let begin = start; begin < start + 25;) {
      batch();
      const end = performance.now();
      if (end > begin) best = Math.min(best, (end - begin) / 50);
      begin = end;
    }
    if (isFinite(best)) $("speed").textContent = `${micro(1000 * best)} µs a prediction in this browser`;
  }

  bars(scores, label) {
    const two = scores.length === 1, names = this.module.classes?.map(named) ?? DATA.classes, most = Math.max(...scores.map(Math.abs), 1e-9);
    let rows = scores.map((score, i) => ({ score, name: two ? "score" : names[i], on: two || names[i] === label }));
    if (rows.length > 12) rows = rows.sort((a, b) => b.score - a.score).slice(0, 12);
    const lines = rows.map(({ score, name, on }) => barRow(name, score, two ? Math.max(most, 1) : most, on));
    $("scores").tBodies[0].replaceChildren(...lines, ...(two ? [this.sides()] : []));
  }

  /** A line below the single score: negative scores mean the first class, others the second. */
  sides() {
    const row = make("tr", "", { class: "sides" }), cell = make("td"), names = make("div"), [first, second] = DATA.classes;
    names.append(make("span", `← ${first}`, { title: first }), make("span", `${second} →`, { title: second }));
    cell.append(names);
    row.append(make("td"), cell, make("td"));
    return row;
  }

  // Drawing on a grid of cells, one a feature.

  makeGrid() {
    const { side } = DATA.image, grid = $("grid");
    $("draw").hidden = false;
    grid.style.gridTemplateColumns = `repeat(${side}, 1fr)`;
    for (let y = 0; y < side; y++) {
      const line = make("div", "", { role: "row" });
      for (let x = 0; x < side; x++) {
        const cell = make("button", "", { type: "button", role: "gridcell", tabindex: x + y ? -1 : 0 });
        this.cells.push(cell);
        line.append(cell);
      }
      grid.append(line);
    }
    grid.addEventListener("keydown", (event) => this.key(event));
    grid.addEventListener("pointerdown", (event) => { this.last = null; grid.setPointerCapture(event.pointerId); this.stroke(event); });
    grid.addEventListener("pointermove", (event) => { if (event.buttons) this.stroke(event); });
  }

  ink(i, value) {
    const share = Math.min(Math.max(value / DATA.image.top, 0), 1), { side } = DATA.image;
    this.cells[i].style.setProperty("--v", share);
    this.cells[i].setAttribute("aria-label", `row ${Math.floor(i / side) + 1}, column ${i % side + 1}: ${Math.round(100 * share)} %`);
  }

  /** Ink from the last position of the pen to this one; it fades over one cell. */
  stroke(event) {
    const box = $("grid").getBoundingClientRect(), { side } = DATA.image;
    const now = [(event.clientX - box.left) / box.width * side, (event.clientY - box.top) / box.height * side];
    this.paint((x, y) => 1.25 - distance([x, y], this.last ?? now, now));
    this.last = now;
    event.preventDefault();
  }

  paint(shareAt) {
    const { side, top } = DATA.image, row = this.numbers()[0] ?? new Array(side * side).fill(0);
    this.set(row.map((value, i) => {
      const ink = top * Math.min(Math.max(shareAt(i % side + 0.5, Math.floor(i / side) + 0.5), 0), 1);
      return Math.max(value, top > 1 ? Math.round(ink) : Number(ink.toFixed(3)));
    }));
  }

  key(event) {
    const { side } = DATA.image, at = this.cells.indexOf(document.activeElement);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key];
    if (step && this.cells[at + step]) {
      this.cells[at].tabIndex = -1;
      this.cells[at + step].tabIndex = 0;
      this.cells[at + step].focus();
    } else if (event.key === " " || event.key === "Enter") {
      this.paint((x, y) => (Math.floor(y) * side + Math.floor(x) === at ? 1 : 0));
    } else if (!step) return;
    event.preventDefault();
  }
}

/** A row of a table: a name, a bar from the middle to one side, and the number; `most` fills a side. */
function barRow(name, value, most, on) {
  const row = make("tr", "", on ? { class: "on" } : {}), bar = make("div", "", { class: "bar" }), span = make("span"), cell = make("td");
  const width = 50 * Math.abs(value) / most;
  span.style.cssText = `left:${value < 0 ? 50 - width : 50}%;width:${width}%`;
  bar.append(span);
  cell.append(bar);
  row.append(make("th", name, { scope: "row", title: name }), cell, make("td", value.toFixed(2), { class: "number" }));
  return row;
}

/** The numbers of a model, from the JSON file that the page offers; null if it has none. */
async function parametersOf(point) {
  const packed = DATA.models[point.key]?.[".json"];
  return packed ? JSON.parse(new TextDecoder().decode(await unpacked(packed))) : null;
}

/** A prediction as it is shown: a class, a value, or a verdict. */
function named(prediction) {
  if (DATA.task === "novelty") return DATA.classes[prediction > 0 ? 1 : 0];
  return DATA.task === "regress" ? Number(prediction.toPrecision(4)).toLocaleString("en") : DATA.labels[String(prediction)] ?? String(prediction);
}

/** How far a place is from the line between two others. */
function distance([x, y], [ax, ay], [bx, by]) {
  const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
  const t = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0;
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}
