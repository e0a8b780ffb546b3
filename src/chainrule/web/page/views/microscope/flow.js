// What flows through the model: the length of the residual stream, and the neurons of its MLPs.

import { ask as plainAsk, recorded } from "../../lib/api.js";
import { h, number, replace } from "../../lib/dom.js";
import { unpack } from "../../lib/maps.js";
import { visible } from "../../lib/model.js";

const SHOWN = 12; // neurons, the strongest first

function normTable(rows, pieces, label) {
  const most = Math.max(...rows.flatMap(([, norms]) => norms), 1e-9);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, h("table.lens", h("thead", h("tr", h("th", ""), pieces.map((piece) => h("th.mono", visible(piece))))),
    h("tbody", rows.map(([name, norms]) => h("tr", { data: { norms: name } }, h("th.mono", name), norms.map((x) => h("td", { class: "cell forward", css: { "--weight": `${Math.round((70 * x) / most)}%` }, data: { value: String(x) }, title: String(x) }, number(x, 3))))))));
}

export async function normsCard({ seen }) {
  const inside = new Set(["source", ...seen.blocks.filter((block) => block.of === "source").map((block) => block.name)]);
  const rows = Object.entries(seen.stream_norms), own = rows.filter(([name]) => !inside.has(name)).reverse(), source = rows.filter(([name]) => inside.has(name)).reverse();
  return h("section.card.stack", h("h2", "How the stream grows"), h("p.soft", "The length of the vector at each token, before the first block and after each: the last block on top."),
    normTable(own, seen.pieces, "Lengths of the stream"), source.length && seen.source ? [h("h3", "Of the source"), normTable(source, seen.source, "Lengths of the stream of the source")] : null);
}

export async function neuronsCard({ state, seen, given, keep, listeners, fresh, signal, ask }) {
  const blocks = seen.blocks.filter((block) => block.neurons);
  if (!blocks.some((block) => block.name === state.neurons)) state.neurons = blocks.at(-1).name;
  const body = h("div.stack");
  let found = null, unit = null;
  const pieces = () => (blocks.find((block) => block.name === state.neurons).of === "source" ? seen.source : seen.pieces);
  async function load(how) {
    found = unpack(await how(`/api/microscope/neurons?${given({ block: state.neurons })}`, { signal }));
    unit = null;
    if (fresh()) draw(state.at);
  }
  function draw(at) {
    const [rows, units] = found.shape, row = Math.min(at, rows - 1), values = found.values.subarray(row * units, (row + 1) * units);
    const order = Array.from(values.keys()).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, SHOWN);
    const most = Math.abs(values[order[0]]) || 1, now = unit ?? order[0];
    const across = Array.from({ length: rows }, (_, i) => found.values[i * units + now]), peak = Math.max(...across.map(Math.abs), 1e-12);
    replace(body, h("p.small.soft", "Strongest at ", h("code", visible(pieces()[row])), ` of ${units} neurons. Choose one to see where else it fires.`),
      h("div.bars", order.map((j) => h("button.chance", { type: "button", "aria-pressed": j === now ? "true" : "false", data: { neuron: String(j), value: String(values[j]) }, onclick: () => { unit = j; draw(at); } }, h("code", `neuron ${j}`), h("span.rail", h("span", { class: values[j] < 0 ? "down" : "", css: { width: `${(100 * Math.abs(values[j])) / most}%` } })), h("span.num", number(values[j], 3))))),
      h("p.small.soft", `Neuron ${now} at every token:`),
      h("div.tokens", { data: { unit: String(now) } }, pieces().map((piece, i) => h("span", { class: `token${across[i] > 0 ? " look" : ""}`, css: { "--weight": `${Math.round((70 * Math.abs(across[i])) / peak)}%` }, data: { value: String(across[i]) }, title: number(across[i]) }, visible(piece)))));
  }
  listeners.add((at) => draw(at));
  await load(ask);
  const select = h("select.live", { "aria-label": "Block of the neurons", onchange: (event) => { state.neurons = event.target.value; keep(); load(plainAsk); } }, blocks.map((block) => h("option", { value: block.name, selected: block.name === state.neurons }, block.name)));
  return h("section.card.stack", h("div.row.between", h("h2", "Which neurons fire"), select), body);
}

/** A model that sees a fixed number of tokens: what it looks up for each of them. */
export async function windowCard({ state, seen, given, listeners, fresh, signal, ask }) {
  const body = h("div.stack");
  async function draw(how) {
    const found = await how(`/api/microscope/window?${given({ at: state.at })}`, { signal });
    if (!fresh()) return;
    const most = Math.max(...[...found.rows.flat(), ...(found.logits ?? [])].map(Math.abs), 1e-9), names = found.sees.map((piece) => (piece === null ? "nothing yet" : visible(piece)));
    const cell = (x) => h("td", { class: `cell ${x < 0 ? "backward" : "forward"}`, css: { "--weight": `${Math.round((70 * Math.abs(x)) / most)}%` }, data: { value: String(x) }, title: String(x) }, number(x, 3));
    replace(body, h("p.soft", found.columns ? "It sees these tokens, looks up a row of its table for each, and adds them up: the logits of what it expects." : "It sees these tokens, and looks up a vector for each; side by side they go through the hidden layers."),
      h("div.scroll", { tabindex: "0", role: "region", "aria-label": "What it looks up" }, h("table.lens", found.columns && h("thead", h("tr", h("th", ""), found.columns.map((piece) => h("th.mono", visible(piece))))),
        h("tbody", found.rows.map((row, i) => h("tr", { data: { sees: String(i) } }, h("th.mono", names[i]), row.map(cell))), found.logits && h("tr", { data: { sum: "" } }, h("th", "sum"), found.logits.map(cell))))));
  }
  if (!recorded) listeners.add(() => draw(plainAsk).catch(() => {}));
  await draw(ask);
  return h("section.card.stack", h("h2", "What it sees"), body);
}
