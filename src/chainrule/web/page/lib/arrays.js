// Arrays of any number of axes as small tables: the last two axes are rows and columns, the others label the tables.

import { h, number } from "./dom.js";

function slices(value, shape) {
  if (shape.length <= 2) return [["", value, 0]];
  const found = [];
  const size = shape.slice(-2).reduce((a, b) => a * b, 1);
  const walk = (part, index) => {
    if (index.length === shape.length - 2) found.push([`[${index.join(", ")}]`, part, found.length * size]);
    else part.forEach((each, i) => walk(each, [...index, i]));
  };
  walk(value, []);
  return found;
}

function rowsOf(value, shape) {
  if (shape.length === 0) return [[value]];
  return shape.length === 1 ? [value] : value;
}

/** How strongly a cell is tinted: its size beside the largest one. */
function largest(value) {
  return Array.isArray(value) ? Math.max(0, ...value.map(largest)) : Math.abs(Number(value)) || 0;
}

/**
 * A table of numbers. `onedit(place, text)` makes the entries fields; `tone` is "forward" or "backward".
 */
export function arrayTable(name, value, shape, { onedit, tone = "forward", kind = "float" } = {}) {
  const most = largest(value);
  const cell = (x, place) => {
    const weight = most ? Math.round((Math.abs(Number(x)) / most) * 36) : 0;
    const css = { "--weight": `${weight}%` };
    if (!onedit) return h("td", { css, class: `cell ${tone}`, data: { value: String(x) }, title: String(x) }, kind === "float" ? number(x, 3) : String(Number(x)));
    const field = h("input", {
      value: String(Number(x)), inputmode: "decimal", size: "5", "aria-label": `${name}, entry ${place}`,
      data: { place: String(place) },
      onchange: (event) => onedit(place, event.target.value.replace("−", "-").trim()),
      onfocus: (event) => event.target.select(),
    });
    return h("td", { css, class: `cell edit ${tone}` }, field);
  };
  const tables = slices(value, shape).map(([label, part, start]) => {
    const sub = shape.slice(-2);
    const rows = rowsOf(part, sub);
    const wide = rows[0]?.length ?? 0;
    return h("figure.array", label && h("figcaption", label),
      h("table", h("tbody", rows.map((row, i) => h("tr", row.map((x, j) => cell(x, start + i * wide + j)))))));
  });
  return h("div.arrays", { data: { array: name } }, tables.length && value !== null ? tables : h("span.faint", "none"));
}
