// A figure of a lesson with sliders: points, lines, maps and the numbers behind them, computed anew by the server.

import { ask, query } from "../../lib/api.js";
import { debounce, exact, h, number, replace } from "../../lib/dom.js";
import { unpack } from "../../lib/maps.js";
import { asPython, heading, permalink } from "../../lib/parts.js";
import { plot } from "../../lib/plot.js";

export async function renderFigure(place, name, { params, remember, work }) {
  place.classList.add("stack-large");
  const chosen = Object.fromEntries(params);
  let found = await ask(`/api/figures/${encodeURIComponent(name)}?${query(chosen)}`);
  const wrong = h("div"), maps = h("div.small-maps"), numbers = h("div");
  const plots = found.plots.map((each) => plot("", { x: { label: each.x, low: each.left, high: each.right }, y: { label: each.y, log: each.log, low: each.low, high: each.high }, height: 320 }));
  const load = debounce(60, () => {
    remember(new URLSearchParams(chosen));
    work(wrong, async ({ onjob, signal }) => { found = await ask(`/api/figures/${encodeURIComponent(name)}?${query(chosen)}`, { onjob, signal }); draw(); return []; }, { keep: true });
  });
  const slide = (knob) => {
    const said = h("b.mono", number(knob.value));
    return h("label.field", h("span", `${knob.label}: `, said), h("input", { type: "range", min: String(knob.low), max: String(knob.high), step: String(knob.step), value: String(knob.value), "aria-label": knob.label, data: { knob: knob.name }, oninput: (event) => { chosen[knob.name] = event.target.value; said.textContent = number(Number(event.target.value)); load(); } }));
  };
  replace(place, heading(found.title, null, permalink(), asPython(() => found.python)),
    h("section.card.stack", { data: { figure: name } }, h("h2", found.title), h("p.soft", found.about), found.knobs.length ? h("div.form", found.knobs.map(slide)) : null, wrong, plots.length ? h("div", { class: plots.length > 1 ? "grid2" : "" }, plots.map((each) => each.root)) : null, maps, numbers));

  function draw() {
    plots.forEach((each, i) => each.draw(found.plots[i].series.map((series, k) => ({ color: k, ...series }))));
    replace(maps, found.maps.map((each) => {
      const { shape: [rows, columns], values } = unpack(each.values);
      return h("figure.named", h("figcaption", each.title), h("table.matrix", h("thead", h("tr", h("td"), each.labels.map((label) => h("th", { scope: "col" }, label)))),
        h("tbody", Array.from({ length: rows }, (_, i) => h("tr", h("th", { scope: "row" }, each.labels[i]), Array.from({ length: columns }, (_, j) => h("td.cell", { css: { "--weight": `${Math.round(100 * values[i * columns + j])}%` }, title: `${each.labels[i]} looks at ${each.labels[j]}: ${number(values[i * columns + j], 3)}` })))))));
    }));
    replace(numbers, h("div.scroll", h("table.plain", h("tbody", found.numbers.map((each) => h("tr", { data: { number: each.name } }, h("td", each.name), exact("td.num", each.value, 5)))))));
  }
  draw();
}
