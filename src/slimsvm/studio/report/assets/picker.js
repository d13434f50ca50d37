// The slider: the sizes of one method and the full model; what the model at that size does, and its files.
const stops = (method) => {
  // a budget can end with the size of a smaller one, as it is written: the chosen model, or the first, stands for both
  const bySize = new Map();
  for (const point of DATA.points.filter((point) => point.method === method)) {
    const size = whole(point.size);
    if (!bySize.has(size) || point === state.point) bySize.set(size, point);
  }
  const mine = [...bySize.values()].sort((a, b) => a.size - b.size);
  return FULL && method !== FULL.method ? [...mine, FULL] : mine;
};

function showSlider(state, choose) {
  const slider = $("budget"), select = $("method");
  for (const method of METHODS) select.append(make("option", method === FULL?.method ? `${method} (no budget)` : method, { value: method }));
  select.addEventListener("change", () => choose(nearest(select.value, state.point.size), select.value));
  slider.addEventListener("input", () => choose(stops(select.value)[slider.value], select.value));
}

const nearest = (method, size) => stops(method).reduce((best, point) =>
  Math.abs(Math.log(point.size / size)) < Math.abs(Math.log(best.size / size)) ? point : best);

/** Set the slider, its ticks and the method to a point. */
function moveSlider(point, method) {
  const slider = $("budget"), all = stops(method), place = all.indexOf(point);
  $("method").value = method;
  slider.max = Math.max(all.length - 1, 0);
  slider.disabled = all.length < 2;
  slider.value = place;
  slider.setAttribute("aria-valuetext", `${point === FULL ? "full model, " : ""}${whole(point.size)} support vectors`);
  $("ticks").replaceChildren(...all.map((stop) => make("span", stop === FULL ? "full" : whole(stop.size), stop === point ? { class: "on" } : {})));
}

function stat(name, value, than) {
  const box = make("div"), number = make("dd");
  number.append(make("div", value, { class: "big" }), make("div", than, { class: "than" }));
  box.append(make("dt", name), number);
  return box;
}

function showStats(point) {
  const other = FULL && point !== FULL ? FULL : null;
  const boxes = [
    stat(DATA.words.quality, quality(point.error), `± ${spread(point.se)}${other && DATA.task !== "novelty" ? `; full model ${quality(other.error)}` : ""}`),
    stat("support vectors", whole(point.size), other ? `of ${whole(other.size)}` : point === FULL ? "the full model" : ""),
    stat("size", bytes(point.bytes), other ? times(other.bytes / point.bytes) : point.bytes < 1000 ? "" : `${whole(point.bytes)} bytes`),
    stat("time per row", `${micro(point.us)} µs`, other && point.us && other.us ? `full model ${micro(other.us)} µs` : ""),
  ];
  boxes.forEach((box, number) => { box.dataset.stat = ["accuracy", "vectors", "bytes", "us"][number]; });
  $("stats").replaceChildren(...boxes);
  $("note").textContent = point.note ? `Note: ${point.note}` : "";
}

const ERRS = {
  classify: ["Where it errs", "Test rows: true class down, predicted class across."],
  regress: ["Where it errs", "Test rows: target across, predicted value up. On the line the two are equal."],
  novelty: ["Where it differs", "Test rows: the full model's verdict down, this model's across."],
};

function showErrors(point) {
  [$("errs").textContent, $("errs-help").textContent] = ERRS[DATA.task];
  if (point.pairs) $("confusion").replaceChildren(scatter(point.pairs));
  else showConfusion(point);
}

/** Predicted values against targets, as SVG. */
function scatter(pairs) {
  const all = pairs.flat(), low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
  const at = (value) => (5 + 90 * (value - low) / span).toFixed(2);
  const draw = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const picture = draw("svg", { viewBox: "0 0 100 100", class: "scatter", role: "img", "aria-label": `Predicted values against targets of ${pairs.length} test rows` });
  picture.append(draw("line", { x1: 5, y1: 95, x2: 95, y2: 5 }));
  for (const [target, value] of pairs) picture.append(draw("circle", { cx: at(target), cy: 100 - at(value), r: 1.1 }));
  const box = make("div", "", { class: "plane" }), ends = make("div", "", { class: "ends" });
  ends.append(make("span", short(low)), make("span", "target"), make("span", short(high)));
  box.append(picture, ends);
  return box;
}

const short = (value) => Number(value.toPrecision(3)).toLocaleString("en");

function showConfusion(point) {
  const matrix = point.confusion;
  if (!matrix) {
    $("confusion").replaceChildren(make("p", DATA.classes.length > 30 ? "Too many classes to show." : "The model of this row was not kept.", { class: "small" }));
    return;
  }
  $("errors").classList.toggle("many", DATA.classes.length > 12);
  const table = make("table"), head = make("tr"), most = Math.max(...matrix.flat(), 1);
  table.append(make("caption", "Test rows by true and predicted class", { class: "hidden" }));
  head.append(make("td", ""), ...DATA.classes.map((label) => make("th", label, { scope: "col", title: label })));
  table.append(head);
  matrix.forEach((counts, i) => {
    const row = make("tr");
    row.append(make("th", DATA.classes[i], { scope: "row", title: DATA.classes[i] }));
    counts.forEach((count, j) => {
      const cell = make("td", count, { title: `${count} rows of ${DATA.classes[i]} taken for ${DATA.classes[j]}` });
      const share = i === j ? 0.12 + 0.4 * count / most : count ? 0.25 + 0.6 * count / Math.max(...counts) : 0.04;
      cell.style.background = count || i === j ? `rgba(var(--${i === j ? "good" : "bad"}), ${share})` : "rgba(var(--good), .03)";
      if (!count) cell.className = "zero";
      row.append(cell);
    });
    table.append(row);
  });
  $("confusion").replaceChildren(table);
}

function showPath(point) {
  if (!point.path.length) {
    $("path").replaceChildren(make("p", "There are none.", { class: "small" }));
    return;
  }
  const table = make("table", "", { class: "figures" }), head = make("tr"), body = make("tbody");
  head.append(make("th", "vectors", { scope: "col" }), make("th", "validation error", { scope: "col" }));
  for (const [size, error] of point.path) {
    const row = make("tr", "", size === Math.round(point.size) ? { class: "on" } : {});
    row.append(make("td", whole(size)), make("td", percent(error)));
    body.append(row);
  }
  table.append(make("thead"), body);
  table.tHead.append(head);
  if (point.seeds > 1) table.append(make("caption", `Of the first of ${point.seeds} seeds; the table of all models has means.`));
  $("path").replaceChildren(table);
  const here = body.querySelector(".on");
  if (here) $("path").scrollTop = here.offsetTop - $("path").clientHeight / 2;
}

const KINDS = { ".c": "C source", ".h": "C header", ".mjs": "JavaScript", ".json": "JSON", ".slim": ".slim" };

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function showDownloads(point) {
  const files = DATA.models[point.key] ?? {};
  const name = `${DATA.stem}-${point.method.replace(/[^A-Za-z0-9]/g, "_")}-${point.budget ?? "all"}`;
  const buttons = Object.entries(KINDS).filter(([ending]) => files[ending]).map(([ending, words]) => {
    const button = make("button", words, { type: "button", "data-ending": ending });
    button.addEventListener("click", async () => offer(name + ending, await unpacked(files[ending])));
    return button;
  });
  const missing = Object.keys(KINDS).some((ending) => !files[ending]);
  const hint = `${buttons.length ? "Other files are not here" : "No files of this model are here"}: ${DATA.reasons[point.key] ?? "it was not kept"}.`;
  $("downloads").replaceChildren(...buttons, ...(missing ? [make("span", hint, { class: "small" })] : []));
}

function offer(name, data) {
  const link = make("a", "", { download: name, href: URL.createObjectURL(new Blob([data])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
