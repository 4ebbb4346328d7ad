// A file of every table and of every chart on a click.

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];

/** A field of CSV. A text that a spreadsheet would compute is quoted. */
function csvField(cell) {
  const number = cell.dataset.value;
  if (number) return number;
  const text = cell.textContent.replace(/\s+/g, " ").trim();
  const safe = /^[=+@\t]/.test(text) ? `'${text}` : text;
  return /[",]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

const csvOf = (table) => [...table.rows].map((row) => [...row.cells].map(csvField).join(",")).join("\n") + "\n";

/** The chart as a file of its own, with the colors and letters that it has on the page. */
function svgOf(drawn) {
  const copy = drawn.cloneNode(true);
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  to.forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  });
  const paper = getComputedStyle(document.body).backgroundColor;
  const box = drawn.viewBox.baseVal;
  copy.prepend(svg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}

function save(name, type, text) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function startDownloads() {
  const button = (after, name, label, content) => {
    const own = make("button", { type: "button", class: "download", "aria-label": `${label} of ${name} as a file` }, label);
    own.addEventListener("click", () => save(`${name}.${label.toLowerCase()}`, label === "CSV" ? "text/csv" : "image/svg+xml", content()));
    after.after(own);
  };
  for (const table of document.querySelectorAll(".scroll > table[id]")) {
    button(table.parentElement, table.id.replace(/-table$/, ""), "CSV", () => csvOf(table));
  }
  for (const holder of document.querySelectorAll(".chart[id]")) {
    button(holder, holder.id.replace(/-chart$/, ""), "SVG", () => (holder.querySelector("svg") ? svgOf(holder.querySelector("svg")) : ""));
  }
}
