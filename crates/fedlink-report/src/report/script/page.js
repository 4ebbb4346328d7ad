// The page around the charts: samples in tables, sorting, copying, printing.

function startSwatches() {
  for (const holder of document.querySelectorAll(".swatch[data-curve]")) {
    holder.append(swatch(Number(holder.dataset.curve)));
  }
}

/** Makes the columns of a table sortable; rows without a value stay last. */
function startSorting(table) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const isText = !body.rows.length || !body.rows[0].cells[column].hasAttribute("data-value");
    if (isText && column !== 0) return;
    const button = make("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      // Names first run from A to Z, numbers first from the highest.
      const now = heading.getAttribute("aria-sort");
      const descending = isText ? now === "ascending" : now !== "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        if (isText) return cell.textContent;
        return cell.dataset.value === "" ? null : Number(cell.dataset.value);
      };
      const order = (a, b) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const less = isText ? a.localeCompare(b, "en", { numeric: true }) : a - b;
        return descending ? -less : less;
      };
      body.append(...[...body.rows].sort((a, b) => order(key(a), key(b))));
    });
  });
}

function startCopying() {
  for (const box of document.querySelectorAll(".copyable")) {
    const text = box.querySelector("pre");
    const button = make("button", { type: "button" }, "Copy");
    const status = make("span", { class: "unseen", "aria-live": "polite" });
    box.append(button, status);
    button.addEventListener("click", async () => {
      let done = true;
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        // Without the right to write to the clipboard, the old way: select and copy.
        getSelection().selectAllChildren(text);
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Selected";
      status.textContent = done ? "Copied" : "The text is selected: copy it with the keyboard";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
}

/** On paper everything is open and charts have the width of a page. */
function startPrinting() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((details) => { details.open = true; });
    for (const table of document.querySelectorAll(".scroll table")) {
      // Letters are 10 pixels tall on paper; a table that would then be wider than the paper gets smaller ones.
      const width = (table.scrollWidth * 10) / parseFloat(getComputedStyle(table).fontSize);
      if (table.scrollWidth > table.parentElement.clientWidth) table.style.setProperty("--shrink", Math.min(1, 680 / width));
    }
    onPaper = true;
    CHARTS.forEach(hideCursor);
    CHARTS.forEach(redraw);
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
    for (const table of document.querySelectorAll(".scroll table")) table.style.removeProperty("--shrink");
    onPaper = false;
    CHARTS.forEach(redraw);
  });
}

for (const part of document.querySelectorAll(".scripted")) part.remove();
for (const part of document.querySelectorAll(".needs-script")) part.hidden = CURVES.length === 0;
startSwatches();
if (CURVES.length) {
  startCurves();
  startDevices();
  startScatter();
}
startSplit();
startSorting($("results-table"));
startSorting($("scheduling-table"));
for (const id of ["costs-table", "scatter-table", "groups-table"]) if ($(id)) startSorting($(id));
startCopying();
startDownloads();
startPrinting();
document.documentElement.dataset.ready = "";
