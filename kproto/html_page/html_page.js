// Sorts the rows of a table by a click on a heading, and filters them by a text. Without it the page shows all rows.
"use strict";
document.documentElement.classList.add("js");
const FILTER_FROM = 8; // rows: a shorter table needs no filter
const value = cell => {
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return text !== "" && Number.isFinite(number) ? number : text;
};
const compare = (a, b) =>
  typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
for (const table of document.querySelectorAll("table.rows")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.ariaSort === first ? other : first;
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.ariaSort = order;
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map(row => [value(row.cells[column]), row]);
      rows.sort((a, b) => sign * compare(a[0], b[0]));
      body.append(...rows.map(([, row]) => row));
    });
  });
  if (body.rows.length >= FILTER_FROM) {
    const filter = document.createElement("input");
    filter.type = "search";
    filter.className = "filter";
    filter.placeholder = `Filter ${body.rows.length} rows`;
    filter.setAttribute("aria-label", "Filter the rows of this table");
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.before(filter);
  }
}
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  target.closest("details").open = true;
  target.hidden = false;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
