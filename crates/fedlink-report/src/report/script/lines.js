// Lines and bands.

/** Runs of consecutive points whose values are all known. */
function runs(length, isKnown) {
  const found = [];
  let run = [];
  for (let i = 0; i <= length; i += 1) {
    if (i < length && isKnown(i)) {
      run.push(i);
    } else if (run.length) {
      found.push(run);
      run = [];
    }
  }
  return found;
}

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** Draws curves `{ curve, x, y, low, high }`, bands first so that they cover no line. */
function paintLines(layer, sx, sy, series) {
  for (const { curve, x, low, high } of series) {
    if (!low) continue;
    for (const run of runs(x.length, (i) => known(x[i]) && known(low[i]) && known(high[i]))) {
      const edge = (ends) => run.map((i) => [sx(x[i]), sy(ends[i])]);
      const d = path([...edge(high), ...edge(low).reverse()]) + "Z";
      layer.append(svg("path", { class: "band", "data-curve": curve, d, fill: colorOf(curve) }));
    }
  }
  series.forEach(({ curve, x, y }, index) => {
    const group = svg("g", { class: "series", "data-curve": curve });
    for (const run of runs(x.length, (i) => known(x[i]) && known(y[i]))) {
      const points = run.map((i) => [sx(x[i]), sy(y[i])]);
      group.append(svg("path", { class: "curve", d: path(points), stroke: colorOf(curve), "stroke-dasharray": dashOf(curve) }));
      // Markers about 90 pixels apart, each curve's somewhat shifted against the others'.
      let next = -Infinity;
      for (const [px, py] of points) {
        if (px < next) continue;
        group.append(svg("path", { d: marker(curve, px, py, 3.5), fill: colorOf(curve), class: "dot" }));
        next = next === -Infinity ? px + 90 * ((index % 5) + 1) / 5 : px + 90;
      }
    }
    layer.append(group);
  });
}

/** The value that the drawn line has at x, or null beyond its ends. */
function valueAt(xs, ys, x) {
  if (!xs.length || x < xs[0] || x > xs[xs.length - 1]) return null;
  let i = nearest(xs, x);
  if (xs[i] === x) return ys[i];
  if (xs[i] > x) i -= 1;
  if (i < 0 || i + 1 >= xs.length || !known(ys[i]) || !known(ys[i + 1])) return null;
  return ys[i] + ((x - xs[i]) / (xs[i + 1] - xs[i])) * (ys[i + 1] - ys[i]);
}
