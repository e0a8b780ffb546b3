// Where heads look: a small map of every head, one of them large, linked to the tokens. Gates of recurrent models.

import { ask } from "../lib/api.js";
import { h, number, replace } from "../lib/dom.js";
import { paint, unpack } from "../lib/maps.js";
import { visible } from "../lib/model.js";

export async function attentionCard({ state, seen, given, keep, listeners, pick, reload, fresh }) {
  const blocks = seen.blocks.filter((block) => block.heads.length && !block.cross[0]);
  if (!blocks.some((block) => block.name === state.block)) state.block = blocks[0].name;
  const maps = new Map();
  const grid = h("div.heads"), large = h("div.large");
  const T = seen.tokens.length;

  async function mapOf(block) {
    if (!maps.has(block)) maps.set(block, unpack(await ask(`/api/microscope/attention?${given({ block })}`)));
    return maps.get(block);
  }
  const headOf = ({ shape: [, rows, columns], values }, head) => ({ rows, columns, values: values.subarray(head * rows * columns, (head + 1) * rows * columns) });

  const buttons = new Map();
  replace(grid, blocks.map((block) => h("div.layer", h("span.mono.small.soft", block.name), h("div.thumbs", Array.from({ length: block.heads[0] }, (_, head) => {
    const key = `${block.name}:${head}`;
    const button = h("button.thumb", { type: "button", "aria-label": `${block.name} head ${head}`, class: `thumb${state.off.has(key) ? " off" : ""}`, onclick: () => { state.block = block.name; state.head = head; keep(); show(); } }, h("canvas", { "aria-hidden": "true" }), h("span", head));
    buttons.set(key, button);
    return button;
  })))));

  async function show() {
    for (const [key, button] of buttons) button.setAttribute("aria-pressed", key === `${state.block}:${state.head}` ? "true" : "false");
    const found = await mapOf(state.block);
    if (!fresh()) return;
    if (state.head >= found.shape[0]) state.head = 0;
    const { rows, columns, values } = headOf(found, state.head);
    const canvas = paint(h("canvas.map", { role: "img", "aria-label": `Attention of ${state.block} head ${state.head}: rows look, columns are looked at` }), values, rows, columns);
    const readout = h("p.readout"), links = h("div.tokens.small");
    const key = `${state.block}:${state.head}`;
    const toggle = h("button", { type: "button", onclick: () => { state.off.has(key) ? state.off.delete(key) : state.off.add(key); reload(); } }, state.off.has(key) ? "Switch this head on" : "Switch this head off");
    const link = (query) => replace(links, seen.pieces.map((piece, i) => {
      const weight = values[query * columns + (columns - T) + i];
      return h("button", { type: "button", tabindex: "-1", class: "token look", "aria-pressed": i === query ? "true" : "false", css: { "--weight": `${75 * weight}%` }, data: { weight: String(weight) }, title: `weight ${number(weight)}`, onclick: () => pick(i) }, visible(piece));
    }));
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const i = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows)), j = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
      if (i < 0 || j < 0) return;
      replace(readout, h("code", visible(seen.pieces[i] ?? "")), ` (${i}) looks at `, h("code", visible(seen.pieces[j - (columns - T)] ?? "prefix")), ` (${j}): ${number(values[i * columns + j])}`);
    });
    canvas.addEventListener("click", (event) => { const box = canvas.getBoundingClientRect(); pick(Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows))); });
    const now = (at) => link(at);
    listeners.delete(show.link);
    show.link = now;
    listeners.add(now);
    link(state.at);
    replace(large, h("div.row.between", h("h3", `${state.block}, head ${state.head}`), toggle), h("p.small.soft", "Rows look, columns are looked at. Below: where the chosen token looks; choose another to follow it."), canvas, readout, links);
  }

  (async () => { // the small maps, block by block, without holding up the rest
    for (const block of blocks) {
      const found = await mapOf(block.name);
      if (!fresh()) return;
      for (let head = 0; head < found.shape[0]; head += 1) {
        const { rows, columns, values } = headOf(found, head);
        paint(buttons.get(`${block.name}:${head}`).querySelector("canvas"), values, rows, columns);
      }
    }
  })().catch(() => {});
  await show();
  return h("section.card.stack", h("h2", "Where each head looks"), h("div.attention", grid, large));
}

export async function gatesCard({ state, seen, given }) {
  const blocks = seen.blocks.filter((block) => block.recurrent);
  if (!blocks.some((block) => block.name === state.block)) state.block = blocks[0].name;
  const NAMES = { h: "state h", c: "cell c", i: "input gate i", f: "forget gate f", g: "candidate g", o: "output gate o", r: "reset gate r", z: "update gate z", n: "candidate n" };
  const found = await ask(`/api/microscope/gates?${given({ block: state.block })}`);
  return h("section.card.stack", h("h2", "Gates and states"), h("p.soft", `${state.block}: a row for each token, a column for each unit; blue is positive, orange negative.`),
    h("div.gates", Object.entries(found).map(([name, array]) => {
      const { shape: [rows, columns], values } = unpack(array);
      const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
      return h("figure", { data: { gate: name } }, h("figcaption", NAMES[name] ?? name), paint(h("canvas.map", { role: "img", "aria-label": NAMES[name] ?? name }), values, rows, columns, { most, signed: true }));
    })));
}
