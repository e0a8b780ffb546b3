// Dense maps on canvas: attention, gates. Numbers arrive as float32 in base64.

import { h } from "./dom.js";

export function unpack({ shape, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return { shape, values: new Float32Array(bytes.buffer) };
}

const channels = (name) => {
  const probe = h("span", { css: { color: `var(${name})` } });
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
};

const WIDEST = 560; // pixels of a map's longer side

/** The style of a map whose numbers are squares. */
export const shaped = (rows, columns) => ({ "aspect-ratio": `${columns} / ${rows}`, "max-width": `${Math.max(120, Math.min(WIDEST, (WIDEST * columns) / rows))}px` });

const LABELS = 32; // rows and columns that still have a name beside them
const READABLE = 11; // pixels that a name needs: where cells are smaller, every other one stands there

/** A map with the names of its rows and columns, if they are few; columns may have none. */
export function labeled(canvas, rows, columns) {
  if (Math.max(rows.length, columns?.length ?? 0) > LABELS || rows.length !== canvas.height || (columns && columns.length !== canvas.width)) return canvas;
  const names = (kind, list) => h(`div.${kind}`, { "aria-hidden": "true" }, list.map((name) => h("span", name)));
  const made = h("div.labeled", { css: { "max-width": `calc(${canvas.style.getPropertyValue("max-width") || "100%"} + 4.5em)` } }, h("span"), columns ? names(columns.every((name) => name.length < 3) ? "columns" : "columns.tall", columns) : h("span"), names("rows", rows), canvas);
  new ResizeObserver(() => made.classList.toggle("close", (columns && canvas.clientWidth / columns.length < READABLE) || canvas.clientHeight / rows.length < READABLE)).observe(canvas);
  return made;
}

/**
 * Paint rows × columns of values into a canvas: from the surface color at 0 to blue at `most`; with `signed`, orange below 0.
 */
export function paint(canvas, values, rows, columns, { most = 1, signed = false } = {}) {
  const [low, high, negative] = [channels("--sunken"), channels("--accent"), channels("--warm")];
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i += 1) {
    const x = values[i], t = Math.min(1, Math.abs(x) / most) ** 0.6, end = signed && x < 0 ? negative : high;
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = low[c] + (end[c] - low[c]) * t;
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
