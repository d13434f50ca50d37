// The data of the page, and how its numbers are shown.
const DATA = JSON.parse(document.getElementById("data").textContent);
const BY_KEY = new Map(DATA.points.map((point) => [point.key, point]));
const FULL = BY_KEY.get(DATA.full);
const $ = (id) => document.getElementById(id);

const whole = (value) => (value == null ? "–" : Math.round(value).toLocaleString("en"));
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
/** How good a model with this error is, and a standard error of that. */
const quality = (error) => (DATA.task === "regress" ? (1 - error).toFixed(3) : percent(1 - error));
const spread = (se) => (DATA.task === "regress" ? se.toFixed(3) : percent(se));
const micro = (us) => (us == null ? "–" : Number(us.toPrecision(2)).toLocaleString("en"));

function bytes(count) {
  if (count == null) return "–";
  if (count < 1000) return `${Math.round(count)} bytes`;
  const [size, unit] = count < 1e6 ? [count / 1e3, "kB"] : [count / 1e6, "MB"];
  return `${size.toFixed(size < 10 && !Number.isInteger(size) ? 1 : 0)} ${unit}`;
}

function times(ratio) {
  if (!isFinite(ratio) || ratio <= 0) return "";
  return ratio >= 1.05 ? `${Number(ratio.toPrecision(2)).toLocaleString("en")} times smaller` : "as large";
}

/** An element with text, never with markup: labels are shown as they are. */
function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const METHODS = [...new Set(DATA.points.map((point) => point.method))];
const SHOWN_METHODS = METHODS.filter((name) => name !== FULL?.method);
const colorOf = (method) => (method === FULL?.method ? "--soft" : `--c${SHOWN_METHODS.indexOf(method) % 8}`);
