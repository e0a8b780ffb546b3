// Building the page from elements and text. Data become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, parts) {
  for (const part of parts.flat(Infinity)) {
    if (part === null || part === undefined || part === false) continue;
    element.append(part instanceof Node ? part : document.createTextNode(String(part)));
  }
  return element;
}

function dress(element, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else if (name === "css") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

/** h("div.card", {id: "x"}, "text", child): an element with classes, attributes, listeners and children. */
export function h(kind, ...rest) {
  const [name, ...classes] = kind.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  const given = rest[0] && typeof rest[0] === "object" && !(rest[0] instanceof Node) && !Array.isArray(rest[0]);
  if (given) dress(element, rest.shift());
  return fill(element, rest);
}

/** The same for SVG. */
export function s(kind, given = {}, ...parts) {
  const [name, ...classes] = kind.split(".");
  const element = document.createElementNS(SVG, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(dress(element, given), parts);
}

export function replace(place, ...parts) {
  place.replaceChildren();
  return fill(place, parts);
}

/** Fill a form anew; the field that has the focus keeps it. */
export function refill(form, ...parts) {
  const fields = () => [...form.querySelectorAll("input, select, textarea")];
  const at = fields().indexOf(document.activeElement);
  replace(form, ...parts);
  if (at >= 0) fields()[at]?.focus();
}

/** A number to be read: four significant digits, a real minus. */
export function number(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return String(x);
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(Math.max(0, digits - 2)) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}

/** Text with `names` in code. */
export const prose = (text) => text.split("`").map((part, i) => (i % 2 ? h("code", part) : part));

export const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en-US"));

/** A cell that shows a rounded number and keeps the exact one. */
export function exact(kind, x, digits) {
  return h(kind, { data: { value: String(x) }, title: x === null ? null : String(x) }, number(x, digits));
}

export function debounce(milliseconds, action) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), milliseconds);
  };
}
