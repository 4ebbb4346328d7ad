// The live page: parts of studies come as server-sent events, and are shown once per batch.

/** The parts of each study by its index, as the server sends them. */
const STUDIES = new Map();
let chosen = null;
let scatterStarted = false;
/** The difference between the clock of the server and that of the browser, in seconds. */
let clock = 0;

const cell = (text, kind) => make("td", kind ? { class: kind } : {}, text);

function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 100) return `${Math.round(seconds)} s`;
  return seconds < 6000 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

const ago = (time) => (time > 0 ? `${duration(Math.max(0, Date.now() / 1000 + clock - time))} ago` : "–");

/** Replaces the rows of a table unless they are the same, so that a selection and the focus stay. */
function setRows(body, rows) {
  const next = make("tbody", {}, ...rows);
  if (body.innerHTML !== next.innerHTML) body.replaceChildren(...next.childNodes);
}

function setText(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function stateText(head) {
  const words = {
    running: "running", finished: "finished", stopped: "stopped; it can be resumed",
    silent: "no process has shown a sign of life for a while", "no events yet": "no events yet",
  };
  return words[head.state] || head.state;
}

function showStudies() {
  const order = [...STUDIES.keys()].sort((a, b) => a - b);
  const rows = order.filter((i) => STUDIES.get(i).head).map((i) => {
    const { head, folder } = STUDIES.get(i);
    const button = make("button", { type: "button", "data-study": i }, head.name || folder || "–");
    const row = make("tr", { "aria-current": String(i === chosen) },
      make("th", { scope: "row" }, button, make("span", { class: "policy" }, folder || "")),
      cell(stateText(head)), cell(`${head.done} of ${head.runs}`, "number"),
      cell(head.state === "running" ? duration(head.seconds_left) : "–", "number"),
      cell(head.best ? `${head.best[0]}: ${head.best[1]}` : "–"),
      cell(String(head.failed), "number"), cell(ago(head.last), "number"));
    return row;
  });
  const body = $("studies").tBodies[0];
  const focus = document.activeElement && document.activeElement.dataset.study;
  setRows(body, rows);
  if (focus !== undefined) {
    const button = body.querySelector(`button[data-study="${focus}"]`);
    if (button && document.activeElement !== button) button.focus({ preventScroll: true });
  }
}

const tile = (name, value, detail) => make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, value), make("dd", {}, detail));

function showHead({ head }) {
  setText("study-heading", head.name || "–");
  setText("facts", head.facts);
  setText("goal", head.goal ? `Goal: ${head.goal}` : "");
  const tiles = [
    tile("State", head.state, stateText(head)),
    tile("Runs", `${head.done} of ${head.runs}`, `${head.running} running, ${head.waiting} waiting, ${head.failed} failed`),
    tile("Time left", head.state === "running" ? duration(head.seconds_left) : "–", `last event ${ago(head.last)}`),
    tile("Best so far", head.best ? head.best[1] : "–", head.best ? head.best[0] : "no curve has reached the goal at enough seeds"),
  ];
  $("tiles").replaceChildren(...tiles);
  $("progress").max = Math.max(1, head.runs);
  $("progress").value = head.done + head.failed;
  $("failures").replaceChildren(...head.failures.map(([run, reason]) => make("p", { class: "failure" }, `Failed: ${run}: ${reason}`)));
  $("process-list").replaceChildren(...head.processes.map(([name, alive, last]) =>
    make("li", {}, `${name}: ${alive ? "works" : "does not work"}, last event ${ago(last)}`)));
}

const named = (row) => {
  const name = make("th", { scope: "row" });
  if (row.curve < CURVES.length && SPEC.key[row.curve]) name.append(make("span", { class: "swatch" }, swatch(row.curve)));
  name.append(row.label);
  return name;
};

function showTable({ table }) {
  const [goals, rows] = table;
  const heading = (text, title) => make("th", { scope: "col", class: "number", ...(title && { title }) }, text);
  const head = make("tr", {}, make("th", { scope: "col" }, "Curve"), ...goals.map(([name, text]) => heading(name, text)),
    heading("Reached"), heading("Accuracy now"), heading("Runs done"), make("th", { scope: "col" }, "State"));
  $("standing-table").tHead.replaceChildren(head);
  const value = (goal) => {
    const own = cell(goal.text, "number");
    if (goal.interval) own.append(make("span", { class: "ends" }, ` ${goal.interval}`));
    return own;
  };
  const accuracy = (interval) => {
    const own = cell(interval ? percent(interval.mean) : "–", "number");
    if (interval && interval.low < interval.high) {
      own.append(make("span", { class: "ends" }, ` [${(100 * interval.low).toFixed(2)}, ${(100 * interval.high).toFixed(2)}]`));
    }
    return own;
  };
  const reached = (row) => (row.goals[0] && row.goals[0].reached ? `${row.goals[0].reached[0]} of ${row.goals[0].reached[1]}` : "–");
  setRows($("standing-table").tBodies[0], rows.map((row) => make("tr", {}, named(row), ...row.goals.map(value),
    cell(reached(row), "number"), accuracy(row.accuracy), cell(`${row.done} of ${row.of}`, "number"), cell(row.state))));
  const groups = rows.flatMap((row) => row.groups.map((group) => make("tr", {}, named(row), cell(group.group),
    cell(`${digits(group.heard, 3)} of ${group.devices}`, "number"), cell(percent(group.uploads), "number"), cell(percent(group.joules), "number"))));
  $("groups").hidden = !groups.length;
  setRows($("groups-table").tBodies[0], groups);
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  $("metrics").hidden = !metrics.length;
  $("metrics-table").tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "Curve"), ...metrics.map((name) => heading(name.replace(/_/g, " ")))));
  setRows($("metrics-table").tBodies[0], rows.map((row) => make("tr", {}, named(row), ...metrics.map((name) => cell(digits(row.metrics[name], 4), "number")))));
}

function showRuns({ runs }) {
  const order = ["running", "its process is silent", "failed", "stopped", "waiting", "done"];
  const sorted = [...runs].sort((a, b) => order.indexOf(a[1]) - order.indexOf(b[1]));
  setRows($("runs-table").tBodies[0], sorted.map(([label, state, round, rounds, accuracy]) => make("tr", {},
    make("th", { scope: "row" }, label), cell(state), cell(`${round} of ${rounds}`, "number"), cell(percent(accuracy), "number"))));
}

function showRace({ race }) {
  $("race").hidden = !race;
  if (!race) return;
  $("stages").replaceChildren(...race.stages.map(([stage, text]) => make("li", {}, make("b", {}, stage), `: ${text}`)));
  setRows($("dropped").tBodies[0], race.dropped.map(([stage, candidate, reason, proven]) => make("tr", {},
    make("th", { scope: "row" }, candidate), cell(stage), cell(reason), cell(proven ? "yes" : "no, the budget ended"))));
  setRows($("decided").tBodies[0], race.decided.map(([stage, candidate, reason]) => make("tr", {},
    make("th", { scope: "row" }, candidate), cell(stage), cell(reason))));
}

/** The curves of the chosen study; those that were hidden stay hidden. */
function showCurves(study) {
  const [target, count, charts] = study.charts;
  const curves = [];
  for (let i = 0; i < count; i += 1) if (study[`curve/${i}`]) curves.push(study[`curve/${i}`]);
  if (curves.length !== count) return;
  const hidden = new Set(CURVES.filter((_, i) => !view.shown[i]).map((curve) => curve.label));
  const looks = (data, spec) => JSON.stringify([data.map((curve) => [curve.label, curve.keys, curve.seeds > 1]), spec.key]);
  const isSame = looks(CURVES, SPEC) === looks(curves, charts);
  DATA = { curves, target, charts };
  [CURVES, SPEC] = [curves, charts];
  view.shown = CURVES.map((curve) => !hidden.has(curve.label));
  if (!isSame) {
    buildLegend();
    $("bands").closest("fieldset").hidden = !CURVES.some((curve) => curve.seeds > 1);
  }
  for (const input of document.querySelectorAll('input[name="x"]')) {
    const has = CURVES.some((curve) => curve[input.value].length);
    input.closest("label").hidden = !has && input.value !== "rounds";
    if (!has && input.checked && input.value !== "rounds") {
      view.x = "rounds";
      document.querySelector('input[name="x"][value="rounds"]').checked = true;
    }
  }
  $("trade").hidden = !SPEC.scatter;
  if (SPEC.scatter && !scatterStarted) {
    scatterStarted = true;
    startScatter();
  }
  refresh();
}

function show() {
  if (chosen === null || !STUDIES.has(chosen)) {
    const hash = Number((location.hash.match(/^#study=(\d+)$/) || [])[1]);
    chosen = STUDIES.has(hash) ? hash : [...STUDIES.keys()].sort((a, b) => a - b)[0] ?? null;
  }
  showStudies();
  const study = STUDIES.get(chosen);
  $("study").hidden = !study || !study.head || !study.charts;
  if ($("study").hidden) return;
  showCurves(study);
  showHead(study);
  showTable(study);
  showRuns(study);
  showRace(study);
  document.title = `${study.head.done} of ${study.head.runs} · ${study.head.name} · fedlink watch`;
  document.documentElement.dataset.ready = "";
}

$("studies").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-study]");
  if (!button) return;
  chosen = Number(button.dataset.study);
  view.zoom = null;
  history.replaceState(null, "", `#study=${chosen}`);
  show();
});

function connect() {
  const source = new EventSource(`events${location.search}`);
  source.addEventListener("part", (event) => {
    const { study, part, value } = JSON.parse(event.data);
    if (!STUDIES.has(study)) STUDIES.set(study, {});
    STUDIES.get(study)[part] = value;
  });
  source.addEventListener("shown", (event) => {
    clock = Number(event.data) - Date.now() / 1000;
    $("connection").className = "";
    setText("connection", "Connected: the page follows the events of the folders.");
    show();
  });
  source.addEventListener("error", () => {
    $("connection").className = "lost";
    setText("connection", "The server does not answer: the page shows the last state that it has got. It tries again.");
  });
}

startCurves();
startDownloads();
connect();
setInterval(() => { if (STUDIES.size) showStudies(); }, 5000);
