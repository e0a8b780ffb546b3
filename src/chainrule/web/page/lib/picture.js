// Pictures to keep: a canvas as PNG, a drawing as SVG with the colors it has now.

import { h } from "./dom.js";

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];
const SMALLEST = 640; // pixels of a map's side

export function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A drawing as a file of its own: styles of the page are written into it. */
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const pairs = [[svg, copy], ...[...svg.querySelectorAll("*")].map((each, i) => [each, copy.querySelectorAll("*")[i]])];
  for (const [from, to] of pairs) {
    const style = getComputedStyle(from);
    for (const key of KEPT) if (style.getPropertyValue(key)) to.style.setProperty(key, style.getPropertyValue(key));
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.setProperty("background", getComputedStyle(document.documentElement).getPropertyValue("--surface"));
  return new XMLSerializer().serializeToString(copy);
}

/** A map with whole pixels for each of its numbers. */
function enlarged(canvas) {
  const factor = Math.max(1, Math.ceil(SMALLEST / Math.max(canvas.width, canvas.height)));
  const large = h("canvas", { width: String(canvas.width * factor), height: String(canvas.height * factor) });
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large;
}

/** A button that saves the first drawing or map of `find()`. */
export function pictureButton(name, find) {
  const keep = () => {
    const root = find(), canvas = root.querySelector("canvas.map"), svg = root.querySelector("svg");
    if (canvas) enlarged(canvas).toBlob((blob) => save(`${name}.png`, blob));
    else if (svg) save(`${name}.svg`, new Blob([standalone(svg)], { type: "image/svg+xml" }));
  };
  return h("button.quiet.tight", { type: "button", onclick: keep, "aria-label": `Save the picture of ${name}` }, "Save picture");
}
