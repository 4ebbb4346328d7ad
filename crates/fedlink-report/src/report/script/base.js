// The data, small helpers, numbers as text, and how curves are distinguished.

const DATA = JSON.parse(document.getElementById("data").textContent);
const CURVES = DATA.curves;

const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text nodes, never markup. */
function make(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const minus = (text) => text.replace(/-/g, "\u2212");

/** A number with so many significant digits, without needless zeros. */
function digits(value, count) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-4 || size >= 1e7)
    ? value.toExponential(count - 1)
    : String(Number(value.toPrecision(count)));
  return minus(text);
}

/** A count with a prefix: 12 345 as 12.3 k. */
function prefixed(value, count) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  if (!known(value)) return "–";
  let step = 0;
  while (step + 1 < prefixes.length && Math.abs(Number(value.toPrecision(count))) >= 1000 ** (step + 1)) step += 1;
  return (digits(value / 1000 ** step, count) + "\u00a0" + prefixes[step]).trim();
}

const percent = (value) => (known(value) ? minus((100 * value).toFixed(2)) + "\u00a0%" : "–");

const DASHES = ["", "9 4", "3 3", "11 3 3 3", "5 2"];

/** Corners of the markers after the disc, in units of their radius. */
const MARKERS = [
  "-.9 -.9 .9 -.9 .9 .9 -.9 .9",
  "0 -1.2 1.1 .8 -1.1 .8",
  "0 -1.3 1.3 0 0 1.3 -1.3 0",
  "0 1.2 1.1 -.8 -1.1 -.8",
  "-.4 -1.3 .4 -1.3 .4 -.4 1.3 -.4 1.3 .4 .4 .4 .4 1.3 -.4 1.3 -.4 .4 -1.3 .4 -1.3 -.4 -.4 -.4",
  "-1.2 -.65 -.65 -1.2 0 -.55 .65 -1.2 1.2 -.65 .55 0 1.2 .65 .65 1.2 0 .55 -.65 1.2 -1.2 .65 -.55 0",
].map((corners) => corners.split(" ").map(Number));

/** Color, dashes and marker of a curve: by its index, unless the page gives them. */
const styleOf = (curve) => CURVES[curve]?.style ?? [curve, curve, curve % 6];
const colorAt = (index) => `var(--c${index % 7})`;
const colorOf = (curve) => colorAt(styleOf(curve)[0]);
const dashOf = (curve) => DASHES[styleOf(curve)[1] % DASHES.length];

/** The path of a curve's marker. */
function marker(index, x, y, radius) {
  const kind = styleOf(index)[2] % (MARKERS.length + 1);
  if (kind === 0) {
    return `M${(x - radius).toFixed(1)} ${y.toFixed(1)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;
  }
  const corners = MARKERS[kind - 1];
  let path = "";
  for (let i = 0; i < corners.length; i += 2) {
    path += `${i ? "L" : "M"}${(x + radius * corners[i]).toFixed(1)} ${(y + radius * corners[i + 1]).toFixed(1)}`;
  }
  return path + "Z";
}

/** A sample of a curve's line. */
function swatch(index) {
  return svg("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
    svg("path", { d: "M0 6H34", stroke: colorOf(index), "stroke-width": 2, "stroke-dasharray": dashOf(index) }),
    svg("path", { d: marker(index, 17, 6, 3.5), fill: colorOf(index) }));
}

/** Steps of 1, 2 or 5 that cover the range; at most `max` of them. */
function ticks([low, high], max) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / max));
  const step = [1, 2, 5, 10, 20].map((m) => m * power).find((s) => span / s <= max) || span;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** The smallest range that holds all known values. */
function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (known(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : null;
}
