// Further looks: predictions after each block, what heads look for, and what the model is made of.

import { ask as plainAsk, recorded } from "../../lib/api.js";
import { count, h, number, replace, s } from "../../lib/dom.js";
import { paint, unpack } from "../../lib/maps.js";
import { visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";

export async function lensCard({ seen, given, pick, ask }) {
  const found = await ask(`/api/microscope/lens?${given()}`);
  const rows = found.streams.map((name, i) => [name, found.top[i]]).reverse();
  return h("section.card.stack", h("h2", "When it makes up its mind"), h("p.soft", "The logit lens: what it would predict at each token if it stopped after each block, the last block on top."),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Logit lens" }, h("table.lens", h("thead", h("tr", h("th", ""), found.positions.map((at) => h("th", h("button.quiet.tight.mono", { onclick: () => pick(at) }, visible(seen.pieces[at])))))),
      h("tbody", rows.map(([name, cells]) => h("tr", { data: { stream: name } }, h("th.mono", name), cells.map((top) => h("td", { class: "cell forward", css: { "--weight": `${Math.round(70 * top[0].p)}%` }, data: { id: String(top[0].id), p: String(top[0].p) }, title: top.map((each) => `${visible(each.piece)} ${number(100 * each.p, 3)} %`).join("\n") }, visible(top[0].piece)))))))));
}

const BOX = { width: 330, height: 40, gap: 18, left: 16, lane: 16 };

/** Calls from top to bottom with who feeds whom: from one to the next as a line, past others as an arc. */
function drawCalls(nodes, edges, onpick) {
  const row = new Map(nodes.map((node, i) => [node.id, i])), top = (i) => 12 + i * (BOX.height + BOX.gap), right = BOX.left + BOX.width;
  const inner = edges.filter(([from, to]) => row.has(from) && row.has(to)).map(([from, to]) => [row.get(from), row.get(to)]);
  const lanes = Math.max(0, ...inner.map(([from, to]) => to - from - 1));
  const lines = inner.map(([from, to]) => {
    if (to === from + 1) return s("path.edge", { d: `M${BOX.left + BOX.width / 2} ${top(from) + BOX.height} V${top(to)}` });
    const x = right + BOX.lane * Math.min(8, 1 + Math.log2(to - from)), a = top(from) + BOX.height * 0.7, b = top(to) + BOX.height * 0.3;
    return s("path.edge", { d: `M${right} ${a} C${x} ${a} ${x} ${a} ${x} ${Math.min(b, a + 24)} V${Math.max(a, b - 24)} C${x} ${b} ${x} ${b} ${right} ${b}` });
  });
  const boxes = nodes.map((node, i) => s("g.node.call", { tabindex: "0", role: "button", "aria-label": `Values of ${node.name}, drawn`, data: { draws: node.name }, onclick: () => onpick(node), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onpick(node); } } },
    s("title", {}, `${node.name}: ${node.parameters} parameters, ${node.flops} FLOPs`), s("rect.box", { x: BOX.left, y: top(i), width: BOX.width, height: BOX.height, rx: 9 }),
    s("text.label", { x: BOX.left + 12, y: top(i) + 17 }, node.op), s("text.gradname", { x: BOX.left + 12, y: top(i) + 33 }, (node.layer.split(".").slice(-3).join(".") || "input").slice(0, 26)),
    s("text.data", { x: right - 12, y: top(i) + 17, "text-anchor": "end" }, `(${node.shape.join(", ")})`), s("text.gradname", { x: right - 12, y: top(i) + 33, "text-anchor": "end" }, node.parameters ? `${count(node.parameters)} parameters` : "")));
  const width = right + (lanes ? BOX.lane * 8 : 0) + 16, height = top(nodes.length) + 4;
  return s("svg.calls", { width, height, viewBox: `0 0 ${width} ${height}` }, lines, boxes);
}

const KINDS = { previous: "the token before", first: "the first token", duplicate: "the same token, earlier", induction: "what followed the same token earlier" };

export async function headsCard({ state, given, keep, reload, tell, ask }) {
  const found = await ask(`/api/microscope/heads?${given({ text: null, target: null, edits: null })}`);
  tell(found);
  const see = (block, head) => { Object.assign(state, { block, head, cross: false }); keep(); reload().then(() => document.querySelector("[data-part=attention]")?.scrollIntoView({ behavior: "smooth" })); };
  return h("section.card.stack", h("h2", "What heads look for"), h("p.soft", "How much of its attention each head gives to such tokens, on random tokens that are repeated once: 0 to 1."),
    h("div.grid2", Object.entries(KINDS).map(([kind, about]) => {
      const [block, head, score] = found.best[kind];
      return h("figure.scores", { data: { kind } }, h("figcaption", h("b", about), h("div.small.soft", `Most of all ${block} head ${head}: `, h("span.forward", { data: { best: `${block}:${head}`, value: String(score) } }, number(score, 3)), " ", recorded ? null : h("button.quiet.tight", { type: "button", "aria-label": `Show ${block} head ${head}`, onclick: () => see(block, head) }, "show it"))),
        h("div.scroll", h("table", h("thead", h("tr", h("th.small", "block"), found[kind][0].map((_, i) => h("th.small", `head ${i}`)))), h("tbody", found[kind].map((row, i) => h("tr", h("th.mono.small", found.blocks[i]), row.map((x, j) => h("td", { class: `cell forward${found.blocks[i] === block && j === head ? " best" : ""}`, css: { "--weight": `${Math.round(75 * x)}%` }, data: { value: String(x) } }, number(x, 2)))))))));
    })));
}

export async function architectureCard({ given, fresh, ask, work }) {
  const found = await ask(`/api/microscope/architecture?${given({ text: null, target: null, edits: null })}`);
  const outside = found.nodes.filter((node) => !node.block);
  const around = outside.reduce((sum, node) => sum + node.parameters, 0);
  const most = Math.max(...found.blocks.map((block) => block.parameters), around, 1);
  const show = (node, place) => work(place, async ({ onjob, signal }) => {
    const value = await plainAsk(`/api/microscope/value?${given({ call: node.name })}`, { onjob, signal });
    if (!fresh()) return undefined;
    const { shape: [rows, columns], values } = unpack(value.values), most = Math.max(Math.abs(value.least), Math.abs(value.most), 1e-12), read = h("p.readout");
    const canvas = paint(h("canvas.map.value", { role: "img", "aria-label": `Values of ${node.name}` }), values, rows, columns, { most, signed: true });
    canvas.addEventListener("pointermove", (event) => { const box = canvas.getBoundingClientRect(), i = Math.max(0, Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows))), j = Math.max(0, Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns))); replace(read, `row ${i}, column ${j}: ${number(values[i * columns + j])}`); });
    const fact = (name, x) => h("span.badge", { data: { stat: name, value: String(x) } }, `${name} ${number(x)}`);
    return h("div.stack.values", { data: { call: node.name } }, h("div.row.between", h("div.row", h("b.mono.small", node.name), h("span.mono.small.soft", `(${value.shape.join(", ")})`), fact("mean", value.mean), fact("std", value.std), fact("least", value.least), fact("most", value.most)), pictureButton(node.name, () => place)), canvas, read,
      value.cut && h("p.small.soft", `The first ${count(columns)} columns.`));
  });
  const table = (nodes) => {
    const place = h("div");
    return h("div", h("div.scroll.graph", { tabindex: "0", role: "group", "aria-label": "The calls in order" }, drawCalls(nodes, found.edges, (node) => recorded || show(node, place))), place, h("div.scroll", h("table.plain.nowrap", h("thead", h("tr", h("th", "layer"), h("th", "op"), h("th", "shape"), h("th.num", "parameters"), h("th.num", "FLOPs"), h("th", ""))),
      h("tbody", nodes.map((node) => h("tr", h("td.mono.small", node.layer || "–"), h("td", h("a", { href: `/calculus/ops/${node.op}`, data: { link: "" } }, h("code", node.op))), h("td.mono.small", `(${node.shape.join(", ")})`), h("td.num", node.parameters ? count(node.parameters) : ""), h("td.num", node.flops ? count(node.flops) : ""),
        h("td.live", h("button.quiet.tight", { type: "button", "aria-label": `Values of ${node.name}`, onclick: () => { show(node, place); place.scrollIntoView({ block: "nearest" }); } }, "values"))))))));
  };
  const section = (name, nodes, parameters) => h("details.block", { data: { block: name } }, h("summary", h("b.mono", name), h("span.meter", h("span", { css: { width: `${(100 * parameters) / most}%` } })), h("span.num", `${count(parameters)} parameters`)), table(nodes));
  return h("section.card.stack", h("h2", "What it is made of"),
    h("p.soft", `${found.model} with `, h("b", { data: { parameters: String(found.parameters) } }, count(found.parameters)), ` parameters; ${count(found.flops)} FLOPs for a few tokens. Every op leads to its derivation, “values” to what it computes for your text.`),
    h("div.blocks", outside.length ? section("around the blocks", outside, around) : null,
      found.blocks.map((block) => section(block.name, block.nodes.map((id) => found.nodes[id]), block.parameters))));
}
