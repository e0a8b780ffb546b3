// Points and lines on two axes, each plain or logarithmic: for laws, policies, maps of words, figures of lessons.

import { ticks } from "./chart.js";
import { h, number, replace, s } from "./dom.js";
import { pictureButton } from "./picture.js";

const MARGIN = { left: 62, right: 18, top: 14, bottom: 44 };
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const raised = (n) => [...String(n)].map((c) => (c === "-" ? "⁻" : RAISED[c])).join("");

function written(x, log) {
  const power = Math.log10(Math.abs(x));
  if (log && Number.isInteger(Math.round(power * 1e9) / 1e9) && Math.abs(power) >= 4) return `10${raised(Math.round(power))}`;
  return Math.abs(x) >= 1e5 ? `${number(x / 10 ** Math.floor(power), 2)}·10${raised(Math.floor(power))}` : number(x, 3);
}

function axis(values, { log = false, low, high }, length, from, wanted, room = 0.05) {
  const move = log ? Math.log10 : (x) => x;
  const known = values.filter((x) => Number.isFinite(x) && (!log || x > 0)).map(move);
  if (!known.length) return null;
  let a = low !== undefined ? move(low) : known.reduce((p, q) => Math.min(p, q)), b = high !== undefined ? move(high) : known.reduce((p, q) => Math.max(p, q));
  const extra = (b - a || Math.abs(b) || 1) * room;
  if (low === undefined) a -= extra;
  if (high === undefined) b += extra;
  const at = (x) => from + ((move(x) - a) / (b - a)) * length;
  let marks = ticks(a, b, wanted);
  if (log) {
    const found = [];
    for (let p = Math.floor(a); p <= b; p += 1) for (const m of [1, 2, 5]) found.push([m, m * 10 ** p]);
    const inside = found.filter(([, x]) => move(x) >= a && move(x) <= b), powers = inside.filter(([m]) => m === 1);
    const every = Math.ceil(powers.length / wanted) || 1;
    const some = inside.length <= wanted + 1 ? inside : powers.length > 1 ? powers.filter((_, i) => i % every === 0) : inside.filter((_, i) => i % Math.ceil(inside.length / wanted) === 0);
    marks = some.length > 1 ? some.map(([, x]) => x) : ticks(10 ** a, 10 ** b, wanted).filter((x) => x > 0);
  }
  return { at, marks, log, end: from + length };
}

/**
 * A plot that is drawn anew by `draw(series)`. A series has a name, `x`, `y`, a color number, and may be `dots`, `dashed`,
 * `faint`, `bars`, a `band` ([low], [high]), or have `labels` (a word beside each point) and `size` of its dots.
 * `onpick(series, i)` makes the points buttons.
 */
export function plot(title, { x = {}, y = {}, height = 300, square = false, legend = true, onpick } = {}) {
  const picture = h("div.picture"), names = h("div.legend"), readout = h("div.readout");
  const root = h("figure.chart.plot", h("figcaption", title && h("b", title), legend && names, pictureButton((title || "plot").toLowerCase().replaceAll(/[^a-z]+/g, "-"), () => picture)), picture, readout);
  let series = [], width = 0;

  function paint() {
    width = Math.max(260, picture.clientWidth);
    const tall = square ? Math.min(Math.max(width * 0.72, 300), 560) : height;
    replace(names, series.filter((each) => !each.faint && each.name).map((each) => h("span", h("i", { css: { background: `var(--c${each.color ?? 0})` } }), each.name)));
    const across = axis(series.flatMap((each) => each.x), x, width - MARGIN.left - MARGIN.right, MARGIN.left, Math.max(2, Math.min(8, width / 110)));
    const up = axis(series.flatMap((each) => [...each.y, ...(each.band ? [...each.band[0], ...each.band[1]] : []), ...(each.bars ? [0] : [])]), y, -(tall - MARGIN.top - MARGIN.bottom), tall - MARGIN.bottom, 5);
    if (!across || !up) return replace(picture, h("div.loading", "no points yet"));
    const rules = [
      ...up.marks.map((v) => [s("path.rule", { d: `M${MARGIN.left} ${up.at(v)} H${width - MARGIN.right}` }), s("text.tick", { x: MARGIN.left - 9, y: up.at(v) + 4, "text-anchor": "end" }, written(v, up.log))]),
      ...across.marks.map((v) => s("text.tick", { x: across.at(v), y: tall - MARGIN.bottom + 20, "text-anchor": "middle" }, written(v, across.log))),
      s("text.tick.axis", { x: MARGIN.left + (width - MARGIN.left - MARGIN.right) / 2, y: tall - 6, "text-anchor": "middle" }, x.label ?? ""),
      y.label && s("text.tick.axis", { transform: `translate(13 ${MARGIN.top + (tall - MARGIN.top - MARGIN.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label),
    ];
    const clip = `inside-${Math.random().toString(36).slice(2)}`;
    const svg = s("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}`, role: "img", "aria-label": described(title, series) },
      s("clipPath", { id: clip }, s("rect", { x: MARGIN.left - 8, y: MARGIN.top - 8, width: width - MARGIN.left - MARGIN.right + 16, height: tall - MARGIN.top - MARGIN.bottom + 16 })),
      rules, s("g", { "clip-path": `url(#${clip})` }, series.map((each) => drawn(each, across, up))));
    svg.addEventListener("pointermove", (event) => read(svg, event, across, up));
    svg.addEventListener("pointerleave", () => replace(readout));
    if (onpick) svg.addEventListener("click", (event) => { const found = nearest(svg, event, across, up); if (found) onpick(found.each, found.i); });
    return replace(picture, svg);
  }

  function nearest(svg, event, across, up) {
    const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * (width / box.width), py = (event.clientY - box.top) * (width / box.width);
    let best = null;
    for (const each of series) if (!each.faint) each.x.forEach((v, i) => {
      const far = (across.at(v) - px) ** 2 + (up.at(each.y[i]) - py) ** 2;
      if (Number.isFinite(far) && (!best || far < best.far)) best = { each, i, far };
    });
    return best && best.far < 60 ** 2 ? best : null;
  }

  function read(svg, event, across, up) {
    const found = nearest(svg, event, across, up);
    replace(readout, found ? [h("span", h("i", { css: { background: `var(--c${found.each.color ?? 0})` } }), found.each.labels?.[found.i] ?? found.each.name), h("span", `${x.label ?? "x"} ${number(found.each.x[found.i])}`), h("span", `${y.label ?? "y"} ${number(found.each.y[found.i])}`)] : null);
  }

  new ResizeObserver(() => { if (picture.clientWidth && Math.abs(picture.clientWidth - width) > 1) paint(); }).observe(picture);
  return { root, draw(next) { series = next; if (picture.clientWidth) paint(); } };
}

function drawn(each, across, up) {
  const color = { stroke: `var(--c${each.color ?? 0})` }, parts = [];
  const points = each.x.map((v, i) => [across.at(v), up.at(each.y[i])]);
  if (each.band) {
    const [low, high] = each.band;
    const there = each.x.map((v, i) => `${across.at(v).toFixed(1)} ${up.at(high[i]).toFixed(1)}`), back = each.x.map((v, i) => `${across.at(v).toFixed(1)} ${up.at(low[i]).toFixed(1)}`).reverse();
    parts.push(s("path.band", { d: `M${there.join("L")}L${back.join("L")}Z`, css: { fill: `var(--c${each.color ?? 0})` } }));
  }
  if (each.bars) {
    const base = up.at(0);
    const wide = points.length > 1 ? Math.abs(points[1][0] - points[0][0]) : 8;
    parts.push(points.map(([px, py]) => s("rect", { x: px - wide / 2, y: Math.min(py, base), width: Math.max(wide, 0.5), height: Math.abs(base - py), class: "histogram", css: { fill: `var(--c${each.color ?? 0})` } })));
  } else if (each.line !== false) {
    let pen = false, d = "";
    for (const [px, py] of points) {
      if (!Number.isFinite(px) || !Number.isFinite(py)) { pen = false; continue; }
      d += `${pen ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
      pen = true;
    }
    parts.push(s("path", { d, class: `curve${each.faint ? " faint" : ""}${each.dashed ? " dashed" : ""}`, css: color }));
  }
  if (each.dots || each.line === false) parts.push(points.map(([px, py], i) => s("circle", { cx: px, cy: py, r: each.size ?? 3.4, class: each.on?.[i] ? "spot on" : "spot", css: { fill: `var(--c${each.color ?? 0})` }, data: { x: String(each.x[i]), y: String(each.y[i]), ...(each.labels ? { label: each.labels[i] } : {}) } })));
  if (each.labels) parts.push(points.map(([px, py], i) => (each.labels[i] && !each.silent ? s("text.word", { x: px > across.end - 90 ? px - 7 : px + 7, y: py + 4, "text-anchor": px > across.end - 90 ? "end" : "start", class: each.on?.[i] ? "word on" : "word" }, each.labels[i]) : null)));
  return s("g", { data: { series: each.name ?? "" } }, parts);
}

function described(title, series) {
  const said = series.filter((each) => !each.faint && each.name && each.x.length).slice(0, 6).map((each) => `${each.name} from ${number(each.y[0], 3)} to ${number(each.y.at(-1), 3)}`);
  return `${title || "Plot"}: ${said.join(", ") || "no points yet"}`;
}
