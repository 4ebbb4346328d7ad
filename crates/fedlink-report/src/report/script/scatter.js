// Seconds against joules until the goal: a point for each curve, with its intervals as a cross.

function describeScatter() {
  const axes = SPEC.scatter;
  const points = CURVES.flatMap((curve, i) => (curve.scatter && view.shown[i] ? [{ curve: i, label: curve.label, ...curve.scatter }] : []));
  const stops = [...new Set(points.map((point) => point.seconds))].sort((a, b) => a - b);
  return {
    title: "", height: 380, xAxis: axes.x, yAxis: axes.y,
    x: [axes.x.low, axes.x.high], y: [axes.y.low, axes.y.high], stops,
    xLabel: "seconds until the goal", empty: "No curve is shown",
    paint: (layer, sx, sy) => {
      for (const { curve, seconds, joules, seconds_ends: s, joules_ends: j } of points) {
        layer.append(
          svg("path", { class: "cross", stroke: colorOf(curve), d: `M${sx(s[0])} ${sy(joules)}H${sx(s[1])}M${sx(seconds)} ${sy(j[0])}V${sy(j[1])}` }),
          svg("path", { class: "dot", d: marker(curve, sx(seconds), sy(joules), 5), fill: colorOf(curve) }));
      }
    },
    readout: (at) => ({
      title: `${digits(at, 4)} s`,
      rows: points.filter((point) => point.seconds === at).map((point) => ({
        curve: point.curve, label: point.label, y: point.joules,
        text: `${digits(point.seconds, 4)} s, ${digits(point.joules, 4)} J, ${point.reached} of ${point.of} reached it`,
      })),
    }),
  };
}

function startScatter() {
  if (SPEC.scatter && $("scatter-chart")) dependents.push(chart($("scatter-chart"), describeScatter));
}
