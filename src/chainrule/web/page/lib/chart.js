// Curves as SVG: axes with round numbers, a legend, and a crosshair that reads the nearest points.

import { h, number, replace, s } from "./dom.js";
import { pictureButton } from "./picture.js";

const MOST = 6; // lines that can be read off together; of more the nearest
const MARGIN = { left: 58, right: 16, top: 12, bottom: 30 };

/** Round numbers between two bounds, about `wanted` of them. */
export function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= rough);
  const found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) found.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  return found;
}

/** 1, 2 and 5 times the powers of ten between two exponents; of many only the powers. */
function decades(low, high) {
  const found = [];
  for (let power = Math.floor(low); power <= high; power += 1) for (const m of [1, 2, 5]) if (Math.log10(m) + power >= low && Math.log10(m) + power <= high) found.push([m, m * 10 ** power]);
  const some = found.length > 6 ? found.filter(([m]) => m === 1) : found;
  return some.length > 1 ? some.map(([, x]) => x) : ticks(10 ** low, 10 ** high, 4).filter((x) => x > 0);
}

const short = (x) => (Math.abs(x) >= 10000 ? `${number(x / 1000, 3)}k` : number(x, 3));

/**
 * A chart that is drawn anew by `draw(series)`. A series has a name, `steps`, `values`, a color number, and may be
 * `faint` (the noise behind a smooth line) or have `dots`. The legend names the `group` of those that share a color.
 */
export function chart(title, { log = false, height = 250, label = "step" } = {}) {
  const picture = h("div.picture"), legend = h("div.legend"), readout = h("div.readout", { "aria-live": "off" });
  const root = h("figure.chart", h("figcaption", h("b", title), legend, pictureButton(title.toLowerCase().replaceAll(" ", "-"), () => picture)), picture, readout);
  let series = [], width = 0;

  function scale() {
    const shown = series.filter((each) => each.steps.length);
    const xs = shown.flatMap((each) => [each.steps[0], each.steps.at(-1)]);
    const forRange = shown.filter((each) => !each.faint).length ? shown.filter((each) => !each.faint || each.range) : shown;
    const ys = forRange.flatMap((each) => each.values).filter((y) => Number.isFinite(y) && (!log || y > 0));
    if (!xs.length || !ys.length) return null;
    let [low, high] = [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    const left = Math.min(...xs), right = Math.max(...xs, left + 1);
    low -= room;
    high += room;
    const inside = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    return {
      left, right, low, high, inside,
      x: (step) => MARGIN.left + ((step - left) / (right - left)) * inside.w,
      y: (value) => MARGIN.top + (1 - ((log ? Math.log10(Math.max(value, 1e-300)) : value) - low) / (high - low)) * inside.h,
    };
  }

  function paint() {
    width = Math.max(260, picture.clientWidth);
    const at = scale();
    const named = new Map(series.filter((each) => !each.faint).map((each) => [each.group ?? each.name, each.color]));
    replace(legend, [...named].map(([name, color]) => h("span", h("i", { css: { background: `var(--c${color})` } }), name)));
    if (!at) return replace(picture, h("div.loading", "no points yet"));
    const lines = [];
    const levels = log ? decades(at.low, at.high) : ticks(at.low, at.high, 5);
    for (const y of levels) lines.push(s("path.rule", { d: `M${MARGIN.left} ${at.y(y)} H${width - MARGIN.right}` }), s("text.tick", { x: MARGIN.left - 9, y: at.y(y) + 4, "text-anchor": "end" }, short(y)));
    for (const x of ticks(at.left, at.right, Math.max(2, Math.min(8, width / 110))).filter(Number.isInteger)) lines.push(s("text.tick", { x: at.x(x), y: height - 8, "text-anchor": "middle" }, short(x)));
    const clip = `clip-${title.replace(/\W/g, "")}`;
    const curves = series.filter((each) => each.steps.length).map((each) => {
      let pen = false, d = "";
      each.steps.forEach((step, i) => {
        const y = each.values[i];
        if (!Number.isFinite(y)) { pen = false; return; }
        d += `${pen ? "L" : "M"}${at.x(step).toFixed(1)} ${at.y(y).toFixed(1)}`;
        pen = true;
      });
      return [s("path", { d, class: `curve${each.faint ? " faint" : ""}`, css: { stroke: `var(--c${each.color})` } }),
        each.dots || each.steps.length === 1 ? each.steps.map((step, i) => s("circle", { cx: at.x(step), cy: at.y(each.values[i]), r: each.steps.length > 60 ? 1.5 : 3, css: { fill: `var(--c${each.color})` } })) : null];
    });
    const cross = s("g.cross", {});
    const plot = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described(title, series) },
      s("clipPath", { id: clip }, s("rect", { x: MARGIN.left - 5, y: 0, width: at.inside.w + 10, height: height - MARGIN.bottom })),
      lines, s("g", { "clip-path": `url(#${clip})` }, curves), cross,
      s("text.tick", { x: MARGIN.left - 9, y: height - 8, "text-anchor": "end" }, label));
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const step = at.left + (((event.clientX - box.left) * (width / box.width) - MARGIN.left) / at.inside.w) * (at.right - at.left);
      const py = (event.clientY - box.top) * (width / box.width), far = ([each, i]) => Math.abs(at.y(each.values[i]) - py);
      const all = series.filter((each) => !each.faint && each.steps.length).map((each) => [each, nearest(each.steps, step)]);
      const found = all.length > MOST ? all.sort((a, b) => far(a) - far(b)).slice(0, 1) : all;
      if (!found.length) return;
      const shown = found[0][0].steps[found[0][1]];
      replace(cross, s("path", { d: `M${at.x(shown)} ${MARGIN.top} V${height - MARGIN.bottom}` }), found.map(([each, i]) => s("circle", { cx: at.x(each.steps[i]), cy: at.y(each.values[i]), r: 4, css: { fill: `var(--c${each.color})` } })));
      replace(readout, `step ${shown.toLocaleString("en-US")}`, found.map(([each, i]) => h("span", h("i", { css: { background: `var(--c${each.color})` } }), `${each.name} ${number(each.values[i], 5)}`)));
    });
    plot.addEventListener("pointerleave", () => { replace(cross); replace(readout); });
    return replace(picture, plot);
  }

  new ResizeObserver(() => { if (picture.clientWidth && Math.abs(picture.clientWidth - width) > 1) paint(); }).observe(picture);
  return { root, draw(next) { series = next; if (picture.clientWidth) paint(); } };
}

function described(title, series) {
  const last = series.filter((each) => !each.faint && each.values.length).map((each) => `${each.name} ${number(each.values.at(-1), 4)} at step ${each.steps.at(-1)}`);
  return `${title}: ${last.join(", ") || "no points yet"}`;
}

function nearest(steps, wanted) {
  let low = 0, high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - steps[low - 1] < steps[low] - wanted ? low - 1 : low;
}
