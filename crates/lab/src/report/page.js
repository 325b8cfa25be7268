"use strict";

// Sorts a table by a click on the title of a column, and offers each table as CSV. The page has the
// same content without this script.

const compareTexts = new Intl.Collator("en", { numeric: true }).compare;
const NEXT_ORDER = { none: "ascending", ascending: "descending", descending: "none" };

// Returns the first number of a text with commas between thousands, or NaN.
function firstNumber(text) {
  const number = text.replace(/,(?=\d{3})/g, "").match(/-?\d+(\.\d+)?/);
  return number ? Number(number[0]) : NaN;
}

// Returns the rows sorted by a column. Rows without a figure are last in both orders.
function sortRows(rows, column, isFigure, sign) {
  const text = (row) => row.cells[column].textContent;
  if (!isFigure) return [...rows].sort((a, b) => sign * compareTexts(text(a), text(b)));
  return [...rows].sort((a, b) => {
    const [x, y] = [firstNumber(text(a)), firstNumber(text(b))];
    return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) : sign * (x - y);
  });
}

// Makes the titles of the columns buttons. Clicks select: ascending, descending, original order.
function addSorting(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.lastElementChild.cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = NEXT_ORDER[head.getAttribute("aria-sort") ?? "none"];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order === "none") return body.append(...original);
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      body.append(...sortRows(original, column, head.classList.contains("figure"), sign));
    });
  });
}

// Returns the titles of the columns, with the headings above them.
function columnTitles(table) {
  const above = [...table.tHead.rows].slice(0, -1).flatMap((row) => [...row.cells]);
  const groups = above.flatMap((cell) => Array(cell.colSpan).fill(cell.textContent));
  const titles = [...table.tHead.lastElementChild.cells];
  return titles.map((cell, column) => `${groups[column] ?? ""} ${cell.textContent}`.trim());
}

// Returns the text of a cell. Numbers have no commas, and missing figures are empty.
function plainText(cell) {
  const text = cell.textContent.trim();
  if (!cell.classList.contains("figure")) return text;
  return /^[–-]$/.test(text) ? "" : text.replace(/,(?=\d{3})/g, "");
}

// Returns the table as CSV (RFC 4180), in its current order.
function toCsv(table) {
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(plainText));
  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [columnTitles(table), ...rows].map((row) => row.map(field).join(",") + "\r\n").join("");
}

function addDownload(table, place) {
  const button = document.createElement("button");
  button.textContent = "Download table as CSV";
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([toCsv(table)], { type: "text/csv" }));
    link.download = `table-${place + 1}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(button);
  table.parentElement.after(tools);
}

document.querySelectorAll("table").forEach((table, place) => {
  addSorting(table);
  addDownload(table, place);
});
