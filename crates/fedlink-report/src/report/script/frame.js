// The common parts of all charts: axes, the cursor with its readout, the keyboard, and zooming by dragging.

const CHARTS = [];
/** Whether the page is being printed: charts then have the width of the paper, or half of it. */
let onPaper = false;

/**
 * A chart in `host`. `describe(width)` returns what to draw:
 *   title, height;
 *   xAxis, yAxis  their axes in the specification;
 *   x, y          the parts of them that are seen;
 *   xLabel        if it is not that of the axis;
 *   paint         (layer, sx, sy) draws the data;
 *   stops         ascending positions where the cursor may stand;
 *   readout       (x) -> { title, rows: [{ curve, label, text, y }] };
 *   references    [{ y, label }] lines to compare with;
 *   zoom          (from, to) narrows the x axis, (null) resets it; optional.
 */
function chart(host, describe) {
  const live = make("div", { class: "unseen", "aria-live": "polite" });
  const readout = make("div", { class: "readout", hidden: "" });
  const holder = make("div", { tabindex: 0, role: "application", "aria-roledescription": "chart" });
  host.append(holder, readout, live);
  const state = { host, holder, readout, live, describe, cursor: null, drag: null, width: 0 };
  CHARTS.push(state);
  holder.addEventListener("pointermove", (event) => pointerMoved(state, event));
  // A finger leaves when it is lifted; the readout at its position should stay.
  holder.addEventListener("pointerleave", (event) => { if (!state.drag && event.pointerType !== "touch") hideCursor(state); });
  holder.addEventListener("pointerdown", (event) => pointerDown(state, event));
  holder.addEventListener("pointerup", (event) => pointerUp(state, event));
  holder.addEventListener("pointercancel", () => {
    state.drag = null;
    hideCursor(state);
  });
  holder.addEventListener("dblclick", () => state.spec.zoom && state.spec.zoom(null));
  holder.addEventListener("keydown", (event) => keyPressed(state, event));
  holder.addEventListener("blur", () => hideCursor(state));
  new ResizeObserver(() => {
    if (Math.abs(host.clientWidth - state.width) > 1) redraw(state);
  }).observe(host);
  redraw(state);
  return { redraw: () => redraw(state) };
}

function redraw(state) {
  const paper = state.host.closest(".pair") ? 335 : 680;
  const width = onPaper ? paper : Math.max(state.host.clientWidth, 240);
  const spec = state.describe(width);
  const references = (spec.references || []).filter(({ y }) => y >= spec.y[0] && y <= spec.y[1]);
  const top = 12 + (spec.title ? 16 : 0) + (references.length ? 18 : 0);
  const xLabel = spec.xLabel || spec.xAxis.label;
  const yTicks = ticksOf(spec.yAxis, [Math.min(...spec.y), Math.max(...spec.y)], Math.max(2, Math.floor((spec.height - 60) / 24)));
  const left = 30 + 7.2 * Math.max(1, ...yTicks.map(({ label }) => label.length));
  const [right, bottom] = [width - 14, spec.height - 46];
  const xTicks = ticksOf(spec.xAxis, spec.x, Math.max(2, Math.floor((right - left) / 70)));
  const scale = ([low, high], from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const [sx, sy] = [scale(spec.x, left, right), scale(spec.y, bottom, top)];
  const clip = `clip-${CHARTS.indexOf(state)}`;
  const plot = svg("svg", { viewBox: `0 0 ${width} ${spec.height}`, width, height: spec.height, "aria-hidden": "true" },
    svg("clipPath", { id: clip }, svg("rect", { x: left - 5, y: top - 5, width: right - left + 10, height: bottom - top + 10 })));
  if (spec.title) plot.append(svg("text", { class: "title", x: left, y: 16 }, spec.title));
  for (const { at, label } of yTicks) {
    plot.append(
      svg("line", { class: "grid", x1: left, x2: right, y1: sy(at), y2: sy(at) }),
      svg("text", { x: left - 8, y: sy(at) + 4, "text-anchor": "end" }, label));
  }
  for (const { at, label } of xTicks) {
    plot.append(
      svg("line", { class: "axis", x1: sx(at), x2: sx(at), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: sx(at), y: bottom + 19, "text-anchor": sx(at) > right - 14 ? "end" : "middle" }, label));
  }
  plot.append(
    svg("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    svg("text", { class: "x-label", x: (left + right) / 2, y: bottom + 39, "text-anchor": "middle" }, xLabel),
    svg("text", { class: "y-label", transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, spec.yAxis.label));
  const layer = svg("g", { "clip-path": `url(#${clip})` });
  spec.paint(layer, sx, sy, right - left);
  const overlay = svg("g", {});
  plot.append(layer, svg("rect", { class: "plot", x: left, y: top, width: right - left, height: bottom - top, fill: "transparent" }));
  for (const { y, label } of references) {
    // Its name is above the plot, where no curve or bar can cover it.
    plot.append(
      svg("line", { class: "reference", x1: left, x2: right, y1: sy(y), y2: sy(y) }),
      svg("line", { class: "reference", x1: left, x2: left + 28, y1: top - 12, y2: top - 12 }),
      svg("text", { class: "reference-label", x: left + 34, y: top - 8 }, label));
  }
  if (!spec.stops.length) {
    plot.append(svg("text", { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" }, spec.empty || "No values"));
  }
  plot.append(overlay);
  state.holder.setAttribute("aria-label", `${spec.title || spec.yAxis.name} by ${xLabel}. Arrow keys read the values.`);
  state.holder.replaceChildren(plot);
  Object.assign(state, { spec, sx, sy, left, right, top, bottom, width: state.host.clientWidth, pixels: width, overlay });
  if (state.cursor !== null) showCursor(state, state.cursor);
}

/** The stop nearest to a position. */
function nearest(stops, x) {
  let [low, high] = [0, stops.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (stops[middle] <= x) low = middle; else high = middle;
  }
  return Math.abs(stops[high] - x) < Math.abs(stops[low] - x) ? high : low;
}

const MAX_ROWS = 14;

function showCursor(state, x, announce) {
  const { spec, sx, sy, overlay, readout } = state;
  const seen = spec.stops.filter((stop) => stop >= spec.x[0] && stop <= spec.x[1]);
  if (!seen.length) return hideCursor(state);
  state.cursor = seen[nearest(seen, x)];
  const { title, rows } = spec.readout(state.cursor);
  const at = sx(state.cursor);
  overlay.replaceChildren(svg("line", { class: "cursor", x1: at, x2: at, y1: state.top, y2: state.bottom }));
  for (const row of rows) {
    if (known(row.y) && row.y >= spec.y[0] && row.y <= spec.y[1]) {
      overlay.append(svg("path", { class: "dot", d: marker(row.curve, at, sy(row.y), 4.5), fill: colorOf(row.curve) }));
    }
  }
  const table = make("table", {});
  for (const row of rows.slice(0, MAX_ROWS)) {
    const name = make("td", {});
    if (row.curve !== undefined) name.append(make("span", { class: "swatch" }, swatch(row.curve)));
    name.append(row.label);
    table.append(make("tr", {}, name, make("td", {}, row.text)));
  }
  readout.replaceChildren(make("b", {}, title), table);
  if (rows.length > MAX_ROWS) readout.append(`and ${rows.length - MAX_ROWS} more`);
  readout.hidden = false;
  const pixel = state.holder.clientWidth / state.pixels;
  const width = readout.offsetWidth;
  const beside = at * pixel + 14 + width > state.holder.clientWidth ? at * pixel - 14 - width : at * pixel + 14;
  readout.style.left = `${Math.max(0, beside)}px`;
  readout.style.top = `${state.top * pixel + 8}px`;
  if (announce) state.live.textContent = [title, ...rows.map((row) => `${row.label} ${row.text}`)].join("; ");
}

function hideCursor(state) {
  state.cursor = null;
  state.overlay.replaceChildren();
  state.readout.hidden = true;
}

/** Where a pointer is, in the units of the x axis. */
function positionOf(state, event) {
  const box = state.holder.getBoundingClientRect();
  const pixel = ((event.clientX - box.left) / box.width) * state.pixels;
  const { spec, left, right } = state;
  return spec.x[0] + (clamp(pixel, left, right) - left) / (right - left) * (spec.x[1] - spec.x[0]);
}

function pointerDown(state, event) {
  if (!state.spec.zoom || event.button !== 0) return;
  state.drag = { from: positionOf(state, event), at: event.clientX };
}

function pointerMoved(state, event) {
  const x = positionOf(state, event);
  if (!state.drag || Math.abs(event.clientX - state.drag.at) < 5) return showCursor(state, x);
  state.holder.setPointerCapture(event.pointerId);
  state.readout.hidden = true;
  const [from, to] = [state.sx(state.drag.from), state.sx(x)];
  state.overlay.replaceChildren(svg("rect", {
    class: "selection", x: Math.min(from, to), y: state.top, width: Math.abs(to - from), height: state.bottom - state.top,
  }));
}

function pointerUp(state, event) {
  const { drag } = state;
  const x = positionOf(state, event);
  state.drag = null;
  if (!drag || Math.abs(event.clientX - drag.at) < 8) return showCursor(state, x);
  hideCursor(state);
  state.spec.zoom(Math.min(drag.from, x), Math.max(drag.from, x));
}

function keyPressed(state, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { spec } = state;
  const seen = spec.stops.filter((stop) => stop >= spec.x[0] && stop <= spec.x[1]);
  const index = state.cursor === null ? -1 : nearest(seen, state.cursor);
  const far = Math.max(1, Math.round(seen.length / 10));
  const moves = {
    ArrowRight: index + (event.shiftKey ? far : 1), ArrowLeft: index - (event.shiftKey ? far : 1),
    PageUp: index + far, PageDown: index - far, Home: 0, End: seen.length - 1,
  };
  const span = spec.x[1] - spec.x[0];
  const middle = state.cursor === null ? (spec.x[0] + spec.x[1]) / 2 : state.cursor;
  const around = (half) => spec.zoom(middle - half, middle + half);
  if (event.key in moves && seen.length) {
    showCursor(state, seen[clamp(moves[event.key], 0, seen.length - 1)], true);
  } else if (event.key === "Escape") {
    hideCursor(state);
  } else if (spec.zoom && (event.key === "+" || event.key === "=")) {
    around(span / 4);
  } else if (spec.zoom && event.key === "-") {
    around(span);
  } else if (spec.zoom && event.key === "0") {
    spec.zoom(null);
  } else {
    return;
  }
  event.preventDefault();
}
