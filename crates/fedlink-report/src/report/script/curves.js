// Accuracy and loss, and the bits that the link carried: charts that share the chosen curves and axis.

/** A key with more values has no button for each. */
const MAX_BUTTONS = 12;

const view = { x: "rounds", y: "accuracy", bands: null, zoom: null, shown: CURVES.map(() => true) };
const dependents = [];

/** Whether bands are drawn: as was chosen, or else if there are few enough to be distinguished. */
const banded = () => view.bands ?? view.shown.filter(Boolean).length <= SPEC.max_bands;

/** The whole x axis, whichever curves are shown, so that hiding one moves nothing. */
const xAxis = () => SPEC.x[view.x];
const wholeX = () => [xAxis().low, xAxis().high];

function setZoom(from, to) {
  const [low, high] = wholeX();
  if (from === null || (from <= low && to >= high)) {
    view.zoom = null;
  } else if (clamp(to, low, high) - clamp(from, low, high) > (high - low) / 500) {
    view.zoom = [clamp(from, low, high), clamp(to, low, high)];
  }
  refresh();
}

/** The chart of `quantity` over the chosen axis. */
function describeCurves(quantity, height, title) {
  const yAxis = SPEC.y[quantity];
  const x = view.zoom || wholeX();
  const series = CURVES.flatMap((curve, i) => {
    if (!view.shown[i]) return [];
    const length = Math.min(curve[view.x].length, curve[quantity].length);
    const hasBand = quantity === "accuracy" && banded() && curve.seeds > 1;
    return [{
      curve: i, label: curve.label, x: curve[view.x].slice(0, length), y: curve[quantity],
      low: hasBand && curve.low, high: hasBand && curve.high,
    }];
  });
  // If some curves or a part of the x axis are chosen, these fill the chart.
  const inside = () => series.flatMap((s) => s.x.flatMap((at, i) =>
    (at < x[0] || at > x[1] ? [] : [s.y[i], s.low && s.low[i], s.high && s.high[i]])));
  const y = view.zoom || !view.shown.every(Boolean) ? viewOf(yAxis, inside()) : [yAxis.low, yAxis.high];
  const stops = [...new Set(series.flatMap((s) => s.x.filter(known)))].sort((a, b) => a - b);
  return {
    title, height, x, y, stops, xAxis: xAxis(), yAxis,
    empty: "No curve is shown",
    references: quantity === "accuracy" ? [{ y: DATA.target, label: `target ${digits(100 * DATA.target, 4)} %` }] : [],
    paint: (layer, sx, sy) => paintLines(layer, sx, sy, series),
    readout: (at) => ({
      title: `${xAxis().name}: ${textOf(xAxis(), at)}`,
      rows: series.map((s) => {
        const value = valueAt(s.x, s.y, at);
        const [low, high] = s.low ? [valueAt(s.x, s.low, at), valueAt(s.x, s.high, at)] : [null, null];
        const ends = known(low) && known(high) ? ` [${minus((100 * low).toFixed(2))}, ${minus((100 * high).toFixed(2))}]` : "";
        return { curve: s.curve, label: s.label, text: textOf(yAxis, value) + ends, y: value };
      }).filter((row) => known(row.y)).sort((a, b) => b.y - a.y),
    }),
    zoom: setZoom,
  };
}

function refresh() {
  dependents.forEach((one) => one.redraw());
  const [low, high] = wholeX();
  const [from, to] = view.zoom || [low, high];
  const text = (value) => textOf(xAxis(), value);
  for (const [id, value] of [["zoom-from", from], ["zoom-to", to]]) {
    $(id).value = Math.round((1000 * (value - low)) / (high - low));
    $(id).setAttribute("aria-valuetext", `${xAxis().name} ${text(value)}`);
  }
  $("zoom-range").textContent = `${xAxis().name}: ${text(from)} to ${text(to)}`;
  $("zoom-reset").disabled = !view.zoom;
  $("bands").checked = banded();
}

function slide() {
  const [low, high] = wholeX();
  const at = (id) => low + ((high - low) * Number($(id).value)) / 1000;
  setZoom(Math.min(at("zoom-from"), at("zoom-to")), Math.max(at("zoom-from"), at("zoom-to")));
}

/** The swept keys of a curve, and its family where curves are colored by it. */
const keysOf = (curve) => (curve.family ? [["family", curve.family], ...curve.keys] : curve.keys);
const valueOf = (curve, key) => (keysOf(curve).find(([own]) => own === key) || [])[1];

/** The swept keys with a handful of values each, if there are two at least that distinguish curves. */
function distinguishingKeys() {
  const values = new Map();
  for (const [key, value] of CURVES.flatMap(keysOf)) {
    values.set(key, (values.get(key) || new Set()).add(value));
  }
  const distinguishing = [...values].filter(([, found]) => found.size > 1).map(([key, found]) => [key, [...found]]);
  return distinguishing.length > 1 ? distinguishing.filter(([, found]) => found.length <= MAX_BUTTONS) : [];
}

/** The legend and the buttons of the curves that are there now. */
function buildLegend() {
  $("legend").replaceChildren();
  $("show-only").replaceChildren();
  // Where curves are colored by family, each family has its name as a heading.
  const groups = new Map();
  CURVES.forEach((curve, i) => {
    const family = curve.family || "";
    if (!groups.has(family)) {
      const group = make("div", { class: "group", role: "group", ...(family && { "aria-label": family }) });
      if (family) group.append(make("span", { class: "family" }, family));
      $("legend").append(group);
      groups.set(family, group);
    }
    const box = make("input", { type: "checkbox", "data-curve": i });
    box.checked = view.shown[i];
    box.addEventListener("change", () => {
      view.shown[i] = box.checked;
      refresh();
    });
    groups.get(family).append(make("label", { title: curve.label }, box, swatch(i), make("span", { class: "name" }, curve.label)));
  });
  for (const [key, values] of distinguishingKeys()) {
    const buttons = values.map((value) => {
      const button = make("button", { type: "button" }, value);
      button.addEventListener("click", showOnly((curve) => valueOf(curve, key) === value));
      return button;
    });
    $("show-only").append(make("span", { role: "group", "aria-label": `Only curves of one ${key}` }, `only ${key.split(".").pop()}: `, ...buttons));
  }
}

const showOnly = (isShown) => () => {
  CURVES.forEach((curve, i) => { view.shown[i] = isShown(curve); });
  for (const box of $("legend").querySelectorAll("input")) box.checked = view.shown[box.dataset.curve];
  refresh();
};

function startCurves() {
  buildLegend();
  $("show-all").addEventListener("click", showOnly(() => true));
  $("show-none").addEventListener("click", showOnly(() => false));
  for (const input of document.querySelectorAll('input[name="x"]')) {
    input.checked = input.value === view.x;
    input.addEventListener("change", () => {
      Object.assign(view, { x: input.value, zoom: null });
      refresh();
    });
  }
  for (const input of document.querySelectorAll('input[name="y"]')) {
    input.checked = input.value === view.y;
    input.addEventListener("change", () => {
      view.y = input.value;
      refresh();
    });
  }
  $("bands").closest("fieldset").hidden = !CURVES.some((curve) => curve.seeds > 1);
  $("bands").addEventListener("change", () => {
    view.bands = $("bands").checked;
    refresh();
  });
  $("zoom-from").addEventListener("input", slide);
  $("zoom-to").addEventListener("input", slide);
  $("zoom-reset").addEventListener("click", () => setZoom(null));
  dependents.push(chart($("curves-chart"), (width) => describeCurves(view.y, width < 560 ? 340 : 460, "")));
  if ($("q-chart")) {
    dependents.push(
      chart($("q-chart"), () => describeCurves("mean_q", 300, "Mean q of the transmissions")),
      chart($("bits-chart"), () => describeCurves("bits_per_round", 300, "Bits sent per round")));
  }
  refresh();
}
