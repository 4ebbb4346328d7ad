// Bars for each device, and the map of classes.

/** Neighboring values together where bars would be thinner than three pixels. */
function grouped(values, width) {
  const size = Math.max(1, Math.ceil(values.length / Math.max(20, Math.floor(width / 3))));
  const groups = [];
  for (let from = 0; from < values.length; from += size) {
    const part = values.slice(from, from + size).filter((item) => known(item.value));
    const numbers = part.map((item) => item.value);
    if (!numbers.length) continue;
    groups.push({
      from, to: Math.min(from + size, values.length) - 1, devices: part.map((item) => item.device),
      low: Math.min(...numbers), high: Math.max(...numbers),
      mean: numbers.reduce((sum, value) => sum + value, 0) / numbers.length,
    });
  }
  return { size, groups };
}

function describeBars(values, width, { title, yLabel, text, axis, reference, sorted, ranked, isOver }) {
  const { size, groups } = grouped(values, width - 70);
  const highest = Math.max(reference.y || 0, ...groups.map((group) => group.high)) || 1;
  const first = sorted || ranked ? 1 : 0;
  const rank = ranked ? "rank" : sorted ? "rank" : "device";
  const order = ranked ? "rank of a device in its seed, mean over the seeds" : sorted ? "devices, most often scheduled first" : "device";
  return {
    title, yLabel, height: 280,
    xLabel: order + (size > 1 ? ` (${size} to a bar: mean, and range behind)` : ""),
    x: [-0.5, Math.max(values.length, 1) - 0.5], y: [0, 1.12 * highest],
    xText: (x) => digits(x, 7), yText: axis,
    xTicks: ticks([0, Math.max(values.length - 1, 1)], Math.max(2, Math.floor((width - 70) / 60))).filter(Number.isInteger),
    stops: groups.map((group) => (group.from + group.to) / 2),
    references: [reference],
    paint: (layer, sx, sy) => {
      for (const group of groups) {
        const [from, to] = [sx(group.from - 0.4), sx(group.to + 0.4)];
        const box = (name, low, high, over) => layer.append(svg("rect", {
          class: name + (over ? " over" : ""), x: from, width: Math.max(to - from, 0.5), y: sy(high), height: Math.max(sy(low) - sy(high), 0),
        }));
        if (size > 1) box("spread", 0, group.high, isOver(group.high));
        box("bar", 0, group.mean, isOver(group.mean));
      }
    },
    readout: (x) => {
      const group = groups.find((one) => one.from - 0.5 <= x && x <= one.to + 0.5);
      if (!group) return { title: "", rows: [] };
      if (group.from === group.to) {
        const where = sorted ? ` (${rank} ${group.from + 1})` : "";
        const name = ranked ? `rank ${group.from + 1}` : `device ${group.devices[0]}${where}`;
        return { title: name, rows: [{ label: yLabel, text: text(group.mean) }] };
      }
      return {
        title: `${rank}s ${group.from + first} to ${group.to + first}`,
        rows: [
          { label: "mean", text: text(group.mean) }, { label: "lowest", text: text(group.low) },
          { label: "highest", text: text(group.high) },
        ],
      };
    },
  };
}

function startDevices() {
  CURVES.forEach((curve, i) => $("device-curve").append(make("option", { value: i }, curve.label)));
  const chosen = () => CURVES[Number($("device-curve").value)] || CURVES[0];
  /** The devices in the chosen order: by number, or by how often they were scheduled. */
  const inOrder = (values) => {
    const { scheduled, ranked } = chosen();
    const items = values.map((value, device) => ({ device, value }));
    return $("device-order").value === "share" && !ranked
      ? items.sort((a, b) => scheduled[b.device] - scheduled[a.device] || a.device - b.device) : items;
  };
  const sorted = () => $("device-order").value === "share";
  const charts = [
    chart($("share-chart"), (width) => describeBars(inOrder(chosen().scheduled), width, {
      title: "Share of rounds scheduled", yLabel: "share of rounds (%)", sorted: sorted(), ranked: chosen().ranked,
      text: percent, axis: (y) => digits(100 * y, 4), isOver: () => false,
      reference: { y: chosen().fair_share, label: `fair share K/M = ${percent(chosen().fair_share)}` },
    })),
    chart($("power-chart"), (width) => describeBars(inOrder(chosen().power), width, {
      title: "Average power", yLabel: DATA.power_unit ? `average power (${DATA.power_unit})` : "average power", sorted: sorted(), ranked: chosen().ranked,
      text: (y) => digits(y, 4), axis: (y) => digits(y, 4), isOver: (y) => y > DATA.average_power * (1 + 1e-9),
      reference: { y: DATA.average_power, label: `allowed P̄ = ${digits(DATA.average_power, 3)} ${DATA.power_unit}`.trim() },
    })),
  ];
  for (const id of ["device-curve", "device-order"]) {
    $(id).addEventListener("change", () => charts.forEach((one) => one.redraw()));
  }
}

function startSplit() {
  const { split } = DATA;
  if (!split || !$("split-chart")) return;
  const classes = Math.min(split.classes, Math.max(0, ...split.counts.map((counts) => counts.length)));
  const max = Math.max(1, ...split.counts.map((counts) => Math.max(0, ...counts)));
  const devices = split.counts.length;
  chart($("split-chart"), (width) => {
    const size = Math.max(1, Math.ceil(devices / Math.max(20, Math.floor((width - 60) / 3))));
    const columns = [];
    for (let from = 0; from < devices; from += size) {
      const part = split.counts.slice(from, from + size);
      const mean = (label) => part.reduce((sum, counts) => sum + (counts[label] || 0), 0) / part.length;
      columns.push({ from, to: from + part.length - 1, counts: Array.from({ length: classes }, (_, label) => mean(label)) });
    }
    const wide = (width - 60) / Math.max(columns.length, 1) >= 30;
    return {
      title: "", height: clamp(58 + 24 * classes, 140, 640),
      xLabel: "device" + (size > 1 ? ` (mean of ${size} to a column)` : ""), yLabel: "class",
      x: [-0.5, Math.max(devices, 1) - 0.5], y: [classes - 0.5, -0.5],
      xText: String, yText: String,
      xTicks: ticks([0, Math.max(devices - 1, 1)], Math.max(2, Math.floor((width - 60) / 50))).filter(Number.isInteger),
      yTicks: ticks([0, Math.max(classes - 1, 1)], 20).filter(Number.isInteger),
      stops: columns.map((column) => (column.from + column.to) / 2),
      paint: (layer, sx, sy) => {
        for (const column of columns) {
          const [left, right] = [sx(column.from - 0.5), sx(column.to + 0.5)];
          column.counts.forEach((count, label) => {
            if (!count) return;
            const share = count / max;
            const gap = right - left > 6 ? 1 : 0;
            layer.append(svg("rect", {
              class: "cell", x: left, width: Math.max(right - left - gap, 0.5), y: sy(label - 0.5), height: Math.max(sy(label + 0.5) - sy(label - 0.5) - gap, 0.5),
              "fill-opacity": (0.1 + 0.9 * share).toFixed(2),
            }));
            if (wide) {
              const strong = share > 0.5 ? " strong" : "";
              layer.append(svg("text", { class: `cell-text${strong}`, x: (left + right) / 2, y: sy(label) + 4 }, prefixed(count, 3)));
            }
          });
        }
      },
      readout: (x) => {
        const column = columns.find((one) => one.from - 0.5 <= x && x <= one.to + 0.5);
        const name = column.from === column.to ? `device ${column.from}` : `devices ${column.from} to ${column.to}, mean`;
        const held = column.counts.map((count, label) => ({ label: `class ${label}`, text: digits(count, 4), count }));
        return { title: name, rows: held.filter((row) => row.count > 0) };
      },
    };
  });
}
