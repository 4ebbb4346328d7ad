// Accuracy and loss, and what the link carried: charts that share the chosen curves and axis.

const X_AXES = {
  rounds: { label: "round", text: (x) => digits(x, 6) },
  bits: { label: "bits sent so far", text: (x) => prefixed(x, 4) },
  symbols: { label: "channel symbols used so far", text: (x) => prefixed(x, 4) },
  seconds: { label: "seconds so far", text: (x) => digits(x, 5) },
  joules: { label: "joules of all devices so far", text: (x) => digits(x, 5) },
};
const Y_AXES = {
  accuracy: { label: "test accuracy (%)", axis: (y) => digits(100 * y, 4), text: percent },
  loss: { label: "test loss", axis: (y) => digits(y, 4), text: (y) => digits(y, 4) },
  mean_q: { label: "mean q", axis: (y) => prefixed(y, 3), text: (y) => prefixed(y, 4) },
  bits_per_round: { label: "bits per round", axis: (y) => prefixed(y, 3), text: (y) => prefixed(y, 4) },
};

/** A key with more values has no button for each. */
const MAX_BUTTONS = 12;

const view = { x: "rounds", y: "accuracy", bands: null, zoom: null, shown: CURVES.map(() => true) };
const dependents = [];

/** Whether bands are drawn: as was chosen, or else if there are few enough to be distinguished. */
const banded = () => view.bands ?? view.shown.filter(Boolean).length <= MAX_BANDS;

/** The whole x axis, whichever curves are shown, so that hiding one moves nothing. */
function wholeX() {
  const [, high] = rangeOf(CURVES.flatMap((curve) => curve[view.x].slice(-1))) || [0, 1];
  return [0, high > 0 ? high : 1];
}

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
function describeCurves(quantity, height, title, width) {
  const axis = Y_AXES[quantity];
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
  const inside = series.flatMap((s) => s.x.flatMap((at, i) =>
    (at < x[0] || at > x[1] ? [] : [s.y[i], s.low && s.low[i], s.high && s.high[i]])));
  const y = padded(rangeOf(inside), quantity === "accuracy");
  const stops = [...new Set(series.flatMap((s) => s.x.filter(known)))].sort((a, b) => a - b);
  return {
    title, height, x, y, stops,
    xLabel: X_AXES[view.x].label, yLabel: axis.label,
    xText: X_AXES[view.x].text, yText: axis.axis,
    empty: "No curve is shown",
    references: quantity === "accuracy" ? [{ y: DATA.target, label: `target ${digits(100 * DATA.target, 4)} %` }] : [],
    paint: (layer, sx, sy, pixels) => paintLines(layer, sx, sy, pixels, series),
    readout: (at) => ({
      title: `${X_AXES[view.x].label}: ${X_AXES[view.x].text(at)}`,
      rows: series.map((s) => {
        const value = valueAt(s.x, s.y, at);
        const [low, high] = s.low ? [valueAt(s.x, s.low, at), valueAt(s.x, s.high, at)] : [null, null];
        const ends = known(low) && known(high) ? ` [${minus((100 * low).toFixed(2))}, ${minus((100 * high).toFixed(2))}]` : "";
        return { curve: s.curve, label: s.label, text: axis.text(value) + ends, y: value };
      }).filter((row) => known(row.y)).sort((a, b) => b.y - a.y),
    }),
    zoom: setZoom,
  };
}

/** Some room beyond the values; shares stay within 0 and 1. */
function padded(range, isShare) {
  if (!range) return [0, 1];
  const room = 0.05 * (range[1] - range[0]) || Math.abs(range[0]) * 0.1 || 0.1;
  const [low, high] = [range[0] - room, range[1] + room];
  const floor = range[0] >= 0 ? Math.max(0, low) : low;
  return isShare ? [floor, range[1] <= 1 ? Math.min(1, high) : high] : [floor, high];
}

function refresh() {
  dependents.forEach((one) => one.redraw());
  const [low, high] = wholeX();
  const [from, to] = view.zoom || [low, high];
  const text = X_AXES[view.x].text;
  for (const [id, value] of [["zoom-from", from], ["zoom-to", to]]) {
    $(id).value = Math.round((1000 * (value - low)) / (high - low));
    $(id).setAttribute("aria-valuetext", `${X_AXES[view.x].label} ${text(value)}`);
  }
  $("zoom-range").textContent = `${X_AXES[view.x].label}: ${text(from)} to ${text(to)}`;
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

function startCurves() {
  // Where curves are colored by family, each family stands under its name.
  const groups = new Map();
  CURVES.forEach((curve, i) => {
    const family = curve.family || "";
    if (!groups.has(family)) {
      const group = make("div", { class: "group", role: "group", ...(family && { "aria-label": family }) });
      if (family) group.append(make("span", { class: "family" }, family));
      $("legend").append(group);
      groups.set(family, group);
    }
    const box = make("input", { type: "checkbox", "data-curve": i, checked: "" });
    box.addEventListener("change", () => {
      view.shown[i] = box.checked;
      refresh();
    });
    groups.get(family).append(make("label", { title: curve.label }, box, swatch(i), make("span", { class: "name" }, curve.label)));
  });
  const show = (isShown) => () => {
    CURVES.forEach((curve, i) => { view.shown[i] = isShown(curve); });
    for (const box of $("legend").querySelectorAll("input")) box.checked = view.shown[box.dataset.curve];
    refresh();
  };
  $("show-all").addEventListener("click", show(() => true));
  $("show-none").addEventListener("click", show(() => false));
  for (const [key, values] of distinguishingKeys()) {
    const buttons = values.map((value) => {
      const button = make("button", { type: "button" }, value);
      button.addEventListener("click", show((curve) => valueOf(curve, key) === value));
      return button;
    });
    $("show-only").append(make("span", { role: "group", "aria-label": `Only curves of one ${key}` }, `only ${key.split(".").pop()}: `, ...buttons));
  }
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
  dependents.push(
    chart($("curves-chart"), (width) => describeCurves(view.y, width < 560 ? 340 : 460, "", width)),
    chart($("q-chart"), (width) => describeCurves("mean_q", 300, "Mean q of the transmissions", width)),
    chart($("bits-chart"), (width) => describeCurves("bits_per_round", 300, "Bits sent in a round", width)));
  refresh();
}
