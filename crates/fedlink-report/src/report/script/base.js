// The data, the specification of the charts, small helpers, and numbers as text.

let DATA = JSON.parse(document.getElementById("data").textContent);
let CURVES = DATA.curves;
/** Axes with their ticks, the looks of curves, and colors: the script draws them and chooses none. */
let SPEC = DATA.charts;

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

/** A value of an axis in running text. */
function textOf(axis, value) {
  if (axis.notation === "percent") return percent(value);
  return axis.notation === "prefixed" ? prefixed(value, 4) : digits(value, 6);
}

const colorOf = (curve) => `var(--c${SPEC.key[curve].look.color})`;
const dashOf = (curve) => SPEC.dashes[SPEC.key[curve].look.dash].join(" ");

/** The path of a curve's marker. */
function marker(index, x, y, radius) {
  const kind = SPEC.key[index].look.marker;
  if (kind === 0) {
    return `M${(x - radius).toFixed(1)} ${y.toFixed(1)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;
  }
  const corners = SPEC.markers[kind - 1].map(([dx, dy]) => `${(x + radius * dx).toFixed(1)} ${(y + radius * dy).toFixed(1)}`);
  return `M${corners.join("L")}Z`;
}

/** A sample of a curve's line. */
function swatch(index) {
  return svg("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
    svg("path", { d: "M0 6H34", stroke: colorOf(index), "stroke-width": 2, "stroke-dasharray": dashOf(index) }),
    svg("path", { d: marker(index, 17, 6, 3.5), fill: colorOf(index) }));
}

/** The ticks of an axis inside a view, at most `max` of them: at multiples of one of its steps. */
function ticksOf(axis, [low, high], max) {
  const step = axis.steps.findLast(({ by }) => by >= ((high - low) / max) * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step.by - 1e-9); i * step.by <= high + step.by * 1e-9; i += 1) {
    found.push({ at: i * step.by, label: minus((i * step.by * axis.factor).toFixed(step.decimals)) });
  }
  return found;
}

/** The part of an axis that shows some values; all of it for none. */
function viewOf(axis, values) {
  const range = rangeOf(values);
  if (!range) return [axis.low, axis.high];
  const room = 0.04 * (range[1] - range[0]) || 0.04 * (axis.high - axis.low);
  return [Math.max(range[0] - room, axis.low), Math.min(range[1] + room, axis.high)];
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
