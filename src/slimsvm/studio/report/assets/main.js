// The page: one chosen model, and all parts that follow it.
const state = { point: BY_KEY.get(DATA.chosen) ?? DATA.points[0] };

const inWords = (error) => {
  const sentence = DATA.words.sentence.replace("{}", quality(error));
  return sentence[0].toUpperCase() + sentence.slice(1);
};

function showAnswer() {
  const point = state.point;
  if (!FULL || point === FULL) {
    $("answer").textContent = `${whole(point.size)} support vectors`;
    $("reason").textContent = `${inWords(point.error)}, in ${bytes(point.bytes)}.`;
    return;
  }
  const vectors = `${whole(point.size)} support vectors instead of ${whole(FULL.size)}`;
  $("answer").textContent = DATA.far || vectors;
  const rule = DATA.by_validation && !DATA.far
    ? `It is the smallest ${point.method} model whose validation error is within one standard error of the lowest.`
    : "";
  const than = DATA.task === "novelty" ? "" : ` (full model: ${quality(FULL.error)})`;
  const size = `${DATA.far && `${vectors}, `}in ${bytes(point.bytes)} instead of ${bytes(FULL.bytes)}`;
  $("reason").textContent = `${inWords(point.error)}${than}, ${size}. ${rule} ${DATA.advice}`;
}

function showTable(choose) {
  const names = ["method", "vectors", DATA.words.error, "bytes", "µs per row", "validation error", "training, s", ""];
  const head = make("thead"), line = make("tr"), body = make("tbody");
  line.append(...names.map((name) => make("th", name, { scope: "col" })));
  head.append(line);
  for (const point of DATA.points) {
    const row = make("tr", "", { "data-key": point.key }), cell = make("td"), button = make("button", "choose", { type: "button", "aria-label": `choose ${point.method} with ${whole(point.size)} vectors` });
    const cells = [whole(point.size), `${percent(point.error)} ± ${percent(point.se)}`, whole(point.bytes), micro(point.us),
      point.validation_error == null ? "–" : percent(point.validation_error), point.seconds == null ? "–" : point.seconds.toFixed(2)];
    button.addEventListener("click", () => choose(point));
    cell.append(button);
    row.append(make("th", point.method, { scope: "row" }), ...cells.map((text) => make("td", text)), cell);
    body.append(row);
  }
  $("models").append(head, body);
}

function showUnfinished() {
  if (!DATA.unfinished.length) return;
  const list = make("ul"), groups = new Map();
  for (const run of DATA.unfinished) {
    const why = `${run.status}: ${run.reason}`, what = `${run.method}${run.budget ? ` with ${Number.isInteger(run.budget) ? `${whole(run.budget)} vectors` : run.budget}` : ""}`;
    groups.set(why, (groups.get(why) ?? new Set()).add(what));
  }
  for (const [why, runs] of groups) list.append(make("li", `${[...runs].join(", ")} – ${why}`));
  $("unfinished").append(make("h3", "Runs without a model"), list);
}

function showFacts() {
  for (const [name, words] of DATA.facts) $("facts").append(make("dt", name), make("dd", words));
}

let chart, live;

function choose(point, method = point.method) {
  state.point = point;
  moveSlider(point, method);
  showStats(point);
  showErrors(point);
  showPath(point);
  showDownloads(point);
  for (const row of $("models").tBodies[0].rows) row.classList.toggle("on", row.dataset.key === point.key);
  chart?.plot.redraw(false);
  live?.use(point);
}

showAnswer();
showTable(choose);
showUnfinished();
showFacts();
showSlider(state, choose);
choose(state.point);
chart = new Chart(state, choose);
live = new Live();
await live.use(state.point);
document.body.dataset.ready = "yes";
