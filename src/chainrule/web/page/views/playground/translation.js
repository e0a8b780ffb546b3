// A translation with its alignment: point at a target token to see what it looked at.

import { count, h, number, replace } from "../../lib/dom.js";
import { labeled, paint, shaped, unpack } from "../../lib/maps.js";
import { visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";
import { beamTable, treeCard } from "./beams.js";
import { alternatives, speed, strip } from "./written.js";

export function drawTranslation(found, { state, branch, begin }) {
  const { shape: [blocks, T, S], values } = unpack(found.alignment);
  let at = Math.min(found.prompt, found.tokens.length - 1), block = blocks - 1;
  const text = h("div"), source = h("div.tokens"), side = h("section.card.stack"), map = h("div.stack");
  const weights = (row) => values.subarray((block * T + row) * S, (block * T + row + 1) * S);
  const pick = (to, focus) => { at = to; draw(); if (focus) text.querySelector(".written").focus(); };
  function draw() {
    const row = weights(Math.min(at, T - 1)); // row t predicts token t of the target
    replace(source, found.source.map((piece, i) => h("span.token.look", { css: { "--weight": `${Math.round(75 * row[i])}%` }, data: { weight: String(row[i]) }, title: number(row[i]) }, visible(piece))));
    replace(text, strip(found.tokens, at, pick, "Tokens of the translation"));
    replace(side, h("h2", "What else"), alternatives(found.tokens[at], (id) => branch([...found.tokens.slice(0, at).map((each) => each.id), id])));
    const canvas = paint(h("canvas.map", { role: "img", "aria-label": `Alignment in ${found.blocks[block]}: rows are target tokens, columns source tokens`, css: shaped(T, S) }), values.subarray(block * T * S, (block + 1) * T * S), T, S), read = h("p.readout");
    canvas.addEventListener("pointermove", (event) => { const box = canvas.getBoundingClientRect(), i = Math.max(0, Math.min(T - 1, Math.floor(((event.clientY - box.top) / box.height) * T))), j = Math.max(0, Math.min(S - 1, Math.floor(((event.clientX - box.left) / box.width) * S))); replace(read, h("code", visible(found.tokens[i]?.piece ?? "end")), " looks at ", h("code", visible(found.source[j])), `: ${number(values[(block * T + i) * S + j])}`); });
    const select = h("select", { "aria-label": "Block of the alignment", onchange: (event) => { block = Number(event.target.value); draw(); } }, found.blocks.map((name, i) => h("option", { value: String(i), selected: i === block }, name)));
    replace(map, h("div.row.between", h("h2", "Alignment"), h("div.row", select, pictureButton("alignment", () => map))), h("p.small.soft", "How much each target token (row) looks at each source token (column): the mean over the heads."), labeled(canvas, [...found.tokens.map((each) => visible(each.piece)), "end"].slice(0, T), found.source.map(visible)), read);
  }
  draw();
  return h("div.stack-large",
    h("div.grid2.uneven", h("section.card.stack", h("div.row.between", h("h2", "The translation"), h("div.row", state.ids && h("button.quiet", { onclick: begin }, "Back to the start"), h("span.badge", `${count(found.new)} new tokens`), speed(found), found.full && h("span.badge.backward", "cut off"))),
      h("p.written", { data: { translation: "" } }, found.text || "(nothing)"), h("p.small.soft", "Choose a token to see which source tokens it looked at."), source, text), side),
    h("section.card", map), found.tree && [h("section.card.stack", h("h2", "What was found"), beamTable(found.beams)), treeCard(found)]);
}
