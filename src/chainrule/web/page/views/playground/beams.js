// Beam search as a tree: the texts that were kept at each step; bold lines lead to what was found.

import { h, number, s } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";
import { speed } from "./written.js";

const ROW = 30, CHAR = 8.4, GAP = 26;

/** Nodes with a parent, a step and a log-probability -> a drawing; columns are steps. */
export function drawTree(nodes, beams) {
  const columns = [];
  nodes.forEach((node, i) => { (columns[node.step - 1] ??= []).push(i); });
  const lines = new Set();
  for (const [rank, beam] of beams.entries()) for (let i = beam.node; i !== null && i !== undefined; i = nodes[i].parent) if (rank === 0) lines.add(i);
  let x = 12;
  const at = new Map();
  for (const column of columns) {
    const wide = Math.max(...column.map((i) => visible(nodes[i].piece).length)) * CHAR + 18;
    column.forEach((i, row) => at.set(i, { x, y: 14 + row * ROW, wide }));
    x += wide + GAP;
  }
  const height = Math.max(...columns.map((column) => column.length), 1) * ROW + 10;
  const edges = nodes.map((node, i) => { if (node.parent === null) return null; const a = at.get(node.parent), b = at.get(i), from = a.x + a.wide; return s("path", { d: `M${from} ${a.y + 9} C${from + 12} ${a.y + 9} ${b.x - 12} ${b.y + 9} ${b.x} ${b.y + 9}`, class: `edge${lines.has(i) ? " on" : ""}` }); });
  const boxes = nodes.map((node, i) => { const place = at.get(i); return s("g", { class: `beam${lines.has(i) ? " on" : ""}`, data: { logprob: String(node.logprob) } }, s("title", {}, `ln P = ${node.logprob}`), s("rect", { x: place.x, y: place.y - 3, width: place.wide, height: 24, rx: 7 }), s("text", { x: place.x + place.wide / 2, y: place.y + 13.5, "text-anchor": "middle" }, visible(node.piece))); });
  return s("svg", { width: x, height, viewBox: `0 0 ${x} ${height}`, role: "img", "aria-label": `Tree of ${nodes.length} texts that were kept` }, edges, boxes);
}

export function beamTable(beams) {
  return h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "found"), h("th.num", "score"), h("th.num.wide", "ln P"), h("th.wide", ""))), h("tbody", beams.map((each) => h("tr", { data: { beam: "" } }, h("td.mono.small", each.text || "(nothing)"), h("td.num", { data: { score: String(each.score) } }, number(each.score)), h("td.num.wide", { data: { logprob: String(each.logprob) } }, number(each.logprob)), h("td.wide", each.finished ? h("span.badge.good", "finished") : h("span.badge", "cut off")))))));
}

export function treeCard(found) {
  const tree = h("div.scroll.graph", { tabindex: "0", role: "group", "aria-label": "Tree of the search" }, drawTree(found.tree, found.beams));
  return h("section.card.stack", h("div.row.between", h("h2", "The search"), h("div.row", speed(found), pictureButton("beams", () => tree))), h("p.small.soft", "A column for each step, the likeliest text on top; the best that was found is marked. Point at a token for ln P of its text."), tree);
}

export const drawBeams = (found) => h("div.stack-large", h("section.card.stack", h("h2", "What was found"), h("p.small.soft", "After ", h("code", visible(found.begun)), ", the likeliest first. The score divides ln P by a power of the length."), beamTable(found.beams)), treeCard(found));
