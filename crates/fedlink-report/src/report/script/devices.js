// Bars for each device, and the map of classes.

/** Neighboring values together where there are more than the specification allows. */
function grouped(values) {
  const size = Math.max(1, Math.ceil(values.length / SPEC.max_bars));
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

function describeBars(values, { title, yAxis, reference, sorted, ranked, isOver }) {
  const { size, groups } = grouped(values);
  const text = (value) => textOf(yAxis, value);
  const first = sorted || ranked ? 1 : 0;
  const rank = sorted || ranked ? "rank" : "device";
  const order = ranked ? "rank of a device in its seed, mean over the seeds" : sorted ? "devices, most often scheduled first" : "device";
  return {
    title, height: 280, xAxis: SPEC.devices, yAxis, y: [yAxis.low, yAxis.high],
    xLabel: order + (size > 1 ? ` (${size} to a bar: mean, and range behind)` : ""),
    x: [-0.5, Math.max(values.length, 1) - 0.5],
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
        return { title: name, rows: [{ label: yAxis.name, text: text(group.mean) }] };
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
  const index = () => Number($("device-curve").value);
  const chosen = () => CURVES[index()];
  /** The devices in the chosen order: by index, or by number of schedules. */
  const inOrder = (values) => {
    const { scheduled, ranked } = chosen();
    const items = values.map((value, device) => ({ device, value }));
    return $("device-order").value === "share" && !ranked
      ? items.sort((a, b) => scheduled[b.device] - scheduled[a.device] || a.device - b.device) : items;
  };
  const sorted = () => $("device-order").value === "share";
  const charts = [
    chart($("share-chart"), () => describeBars(inOrder(chosen().scheduled), {
      title: "Share of rounds scheduled", yAxis: SPEC.scheduled[index()], sorted: sorted(), ranked: chosen().ranked, isOver: () => false,
      reference: { y: chosen().fair_share, label: `fair share K/M = ${percent(chosen().fair_share)}` },
    })),
    chart($("power-chart"), () => describeBars(inOrder(chosen().power), {
      title: "Average power", yAxis: SPEC.power[index()], sorted: sorted(), ranked: chosen().ranked, isOver: (y) => y > DATA.average_power * (1 + 1e-9),
      reference: { y: DATA.average_power, label: `allowed P̄ = ${digits(DATA.average_power, 3)} ${DATA.power_unit}`.trim() },
    })),
  ];
  for (const id of ["device-curve", "device-order"]) {
    $(id).addEventListener("change", () => charts.forEach((one) => one.redraw()));
  }
}

function startSplit() {
  const map = SPEC.split;
  if (!map || !$("split-chart")) return;
  const [classes, devices] = map.count;
  const size = map.block[1];
  const columns = Array.from({ length: Math.ceil(devices / size) }, (_, j) => ({ from: j * size, to: Math.min((j + 1) * size, devices) - 1, j }));
  const shareOf = (value) => clamp((value - map.scale.low) / (map.scale.high - map.scale.low), 0, 1);
  chart($("split-chart"), (width) => ({
    title: "", height: clamp(58 + 24 * classes, 140, 640),
    xAxis: SPEC.devices, yAxis: SPEC.classes,
    xLabel: map.x_label + (size > 1 ? ` (mean of ${size} to a column)` : ""),
    x: [-0.5, Math.max(devices, 1) - 0.5], y: [classes - 0.5, -0.5],
    stops: columns.map(({ from, to }) => (from + to) / 2),
    paint: (layer, sx, sy) => {
      for (const { from, to, j } of columns) {
        const [left, right] = [sx(from - 0.5), sx(to + 0.5)];
        const gap = right - left > 6 ? 1 : 0;
        map.cells.forEach((row, i) => {
          if (!row[j]) return;
          const [top, bottom] = [sy(i * map.block[0] - 0.5), sy(Math.min((i + 1) * map.block[0], classes) - 0.5)];
          const share = shareOf(row[j]);
          layer.append(svg("rect", {
            x: left, width: Math.max(right - left - gap, 0.5), y: top, height: Math.max(bottom - top - gap, 0.5),
            fill: SPEC.shades[Math.round(share * (SPEC.shades.length - 1))],
          }));
          if ((width - 60) / columns.length >= 30) {
            const strong = share < 0.5 ? " strong" : "";
            layer.append(svg("text", { class: `cell-text${strong}`, x: (left + right) / 2, y: (top + bottom) / 2 + 4 }, prefixed(row[j], 3)));
          }
        });
      }
    },
    readout: (x) => {
      const { from, to, j } = columns.find((one) => one.from - 0.5 <= x && x <= one.to + 0.5);
      const name = from === to ? `device ${from}` : `devices ${from} to ${to}, mean`;
      const held = map.cells.map((row, i) => ({ label: `class ${i * map.block[0]}`, text: digits(row[j], 4), count: row[j] }));
      return { title: name, rows: held.filter((row) => row.count > 0) };
    },
  }));
}
