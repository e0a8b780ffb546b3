// Where heads look: a small map of every head, one of them large, linked to the tokens. Gates of recurrent models.

import { Refused, ask as plainAsk } from "../../lib/api.js";
import { h, number, replace } from "../../lib/dom.js";
import { labeled, paint, shaped, unpack } from "../../lib/maps.js";
import { visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";

const SCORES = { previous: ["prev", "the token before"], induction: ["ind", "what followed the same token earlier"] };
const PATTERNS = { previous: "the token before", first: "the first token", even: "all alike" };
export const same = (edit, block, head, cross) => edit.block === block && edit.head === head && Boolean(edit.cross) === cross;

export async function attentionCard({ state, seen, given, keep, listeners, pick, reload, fresh, signal, scores, ask }) {
  const places = seen.blocks.flatMap((block) => block.heads.map((heads, i) => ({ block: block.name, heads, cross: block.cross[i], rows: block.of === "source" ? seen.source : seen.pieces, columns: block.cross[i] || block.of === "source" ? seen.source : seen.pieces, own: block.of === "source" })));
  if (!places.some((each) => each.block === state.block && each.cross === state.cross)) Object.assign(state, { block: places.at(-1).block, cross: places.at(-1).cross });
  const maps = new Map(), buttons = new Map();
  const grid = h("div.heads"), large = h("div.large"), key = h("p.small.soft");
  const keyOf = (block, cross, head) => `${block}${cross ? "→" : ":"}${head}`;
  const off = (block, cross, head) => state.edits.some((edit) => edit.kind === "off" && same(edit, block, head, cross));

  async function mapOf({ block, cross }, how) {
    const key = keyOf(block, cross, "");
    if (!maps.has(key)) maps.set(key, unpack(await how(`/api/microscope/attention?${given({ block, cross: cross || null })}`, { signal })));
    return maps.get(key);
  }
  const headOf = ({ shape: [, rows, columns], values }, head) => ({ rows, columns, values: values.subarray(head * rows * columns, (head + 1) * rows * columns) });
  const title = ({ block, cross }) => (cross ? `${block} → source` : block);

  replace(grid, places.map((place) => h("div.layer", h("span.mono.small.soft", title(place)), h("div.thumbs", Array.from({ length: place.heads }, (_, head) => {
    const button = h("button.thumb", { type: "button", "aria-label": `${title(place)} head ${head}`, class: `thumb${off(place.block, place.cross, head) ? " off" : ""}`, onclick: () => { Object.assign(state, { block: place.block, cross: place.cross, head }); keep(); show(plainAsk); } }, h("canvas", { "aria-hidden": "true" }), h("span", `head ${head}`));
    buttons.set(keyOf(place.block, place.cross, head), button);
    return button;
  })))));

  /** How much each head looks for the two patterns that everybody asks about; the best of each is marked. */
  function scored(found) {
    if (!fresh()) return;
    found.blocks.forEach((block, i) => found.previous[i].forEach((_, head) => {
      const button = buttons.get(keyOf(block, false, head)), row = Object.entries(SCORES);
      if (!button) return;
      const best = (kind) => found.best[kind][0] === block && found.best[kind][1] === head, value = (kind) => found[kind][i][head];
      button.setAttribute("title", `looks at ${row.map(([kind, [, about]]) => `${about} ${number(value(kind), 2)}${best(kind) ? ", most of all" : ""}`).join("; ")}`);
      button.append(...row.map(([kind, [name, about]]) => h("span", { class: `score${best(kind) ? " best" : ""}`, data: { looks: kind, value: String(value(kind)) } }, name, h("b", number(value(kind), 2)))));
    }));
    replace(key, "On random tokens that are repeated: ", Object.values(SCORES).map(([name, about], i) => [i ? ", " : "", h("b", name), ` how much it looks at ${about}`]), ". The head that does so most of all is marked.");
  }
  scores.then(scored);

  async function show(how) {
    const place = places.find((each) => each.block === state.block && each.cross === state.cross);
    const found = await mapOf(place, how);
    if (!fresh()) return;
    if (state.head >= found.shape[0]) state.head = 0;
    for (const [key, button] of buttons) button.setAttribute("aria-pressed", key === keyOf(state.block, state.cross, state.head) ? "true" : "false");
    const { rows, columns, values } = headOf(found, state.head), shift = columns - place.columns.length;
    const canvas = paint(h("canvas.map", { role: "img", "aria-label": `Attention of ${title(place)} head ${state.head}: rows look, columns are looked at`, css: shaped(rows, columns) }), values, rows, columns);
    const readout = h("p.readout"), links = h("div.tokens.small"), change = h("input", { type: "checkbox" });
    const { block, cross, head } = state;
    const add = (edit) => { state.edits = [...state.edits.filter((each) => !(same(each, block, head, cross) && each.kind !== "look") || edit.kind === "look"), { block, head, ...(cross ? { cross } : {}), ...edit }]; reload(); };
    const isOff = off(block, cross, head);
    const toggle = h("button", { type: "button", onclick: () => { if (!isOff) return add({ kind: "off" }); state.edits = state.edits.filter((edit) => !(edit.kind === "off" && same(edit, block, head, cross))); return reload(); } }, isOff ? "Switch this head on" : "Switch this head off");
    const more = h("select", { "aria-label": "Let this head look at", onchange: (event) => add(event.target.value === "mean" ? { kind: "mean" } : { kind: "pattern", pattern: event.target.value }) },
      h("option", { value: "", selected: true, disabled: true }, "Let it look at …"), Object.entries(PATTERNS).filter(([key]) => !cross || key !== "previous").map(([key, words]) => h("option", { value: key }, words)), h("option", { value: "mean" }, "(its mean at every token)"));
    let row = place.own ? rows - 1 : state.at;
    const at = (query, key) => { if (change.checked) add({ kind: "look", query, key }); else if (place.own) link(query); else pick(query); };
    const link = (query) => { row = query; replace(links, place.columns.map((piece, i) => {
      const weight = values[query * columns + shift + i];
      return h("button", { type: "button", tabindex: "-1", class: "token look", "aria-pressed": !cross && i === query ? "true" : "false", css: { "--weight": `${75 * weight}%` }, data: { weight: String(weight) }, title: `weight ${number(weight)}`, onclick: () => (change.checked ? add({ kind: "look", query, key: shift + i }) : at(cross ? row : i, i)) }, visible(piece));
    })); };
    const cell = (event) => { const box = canvas.getBoundingClientRect(); return [Math.max(0, Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows))), Math.max(0, Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns)))]; };
    canvas.addEventListener("pointermove", (event) => {
      const [i, j] = cell(event);
      replace(readout, h("code", visible(place.rows[i] ?? "")), ` (${i}) looks at `, h("code", visible(place.columns[j - shift] ?? "prefix")), ` (${j}): ${number(values[i * columns + j])}`);
    });
    canvas.addEventListener("click", (event) => at(...cell(event)));
    listeners.delete(show.link);
    show.link = (to) => { if (!place.own) link(to); };
    listeners.add(show.link);
    link(row);
    replace(large, h("div.row.between", h("h3", `${title(place)}, head ${head}`), h("div.row.live", toggle, more)), h("p.small.soft", "Rows look, columns are looked at. Below: where the chosen token looks; choose another to follow it."), labeled(canvas, place.rows.map(visible), place.columns.map(visible)), readout, links,
      h("div.row.between", h("label.inline.small.soft.live", change, " Edit: click a cell, or a token below, and the row looks there alone"), pictureButton(`attention-${block}-${head}`, () => large)));
  }

  (async () => { // the small maps, block by block, without holding up the rest
    for (const place of places) {
      const found = await mapOf(place, plainAsk);
      if (!fresh()) return;
      for (let head = 0; head < found.shape[0]; head += 1) {
        const { rows, columns, values } = headOf(found, head);
        paint(buttons.get(keyOf(place.block, place.cross, head)).querySelector("canvas"), values, rows, columns);
      }
    }
    grid.dataset.whole = "true";
  })().catch(() => {});
  await show(ask);
  return h("section.card.stack", h("h2", "Where each head looks"), h("div.attention", h("div.stack", grid, key), large));
}

const GATES = { h: "state h", c: "cell c", i: "input gate i", f: "forget gate f", g: "candidate g", o: "output gate o", r: "reset gate r", z: "update gate z", n: "candidate n" };

export async function gatesCard({ state, seen, given, keep, listeners, fresh, ask }) {
  const blocks = seen.blocks.filter((block) => block.recurrent);
  if (!blocks.some((block) => block.name === state.block)) state.block = blocks[0].name;
  const body = h("div.gates"), strip = h("div"), note = h("div");
  async function draw(how) {
    let without = false;
    const found = await how(`/api/microscope/gates?${given({ block: state.block })}`).catch((error) => {
      if (!(error instanceof Refused) || !state.edits.length) throw error;
      without = true; // an edit took the layer apart: its gates were not kept
      return how(`/api/microscope/gates?${given({ block: state.block, edits: null })}`);
    });
    if (!fresh()) return;
    replace(note, without && h("p.small.soft", { data: { without: "" } }, "Without your changes: one of them takes this layer apart."));
    const arrays = Object.entries(found).map(([name, array]) => [name, unpack(array)]);
    replace(body, arrays.map(([name, { shape: [rows, columns], values }]) => {
      const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
      const canvas = paint(h("canvas.map", { role: "img", "aria-label": GATES[name] ?? name }), values, rows, columns, { most, signed: true }), read = h("p.readout.small");
      canvas.addEventListener("pointermove", (event) => { const box = canvas.getBoundingClientRect(), i = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows)), j = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns)); replace(read, h("code", visible(seen.pieces[i] ?? "")), ` unit ${j}: ${number(values[i * columns + j])}`); });
      return h("figure", { data: { gate: name } }, h("figcaption", GATES[name] ?? name), canvas, read);
    }));
    const now = (at) => replace(strip, h("p.small.soft", "Mean over the units at ", h("code", visible(seen.pieces[at])), ": ", arrays.map(([name, { shape: [, columns], values }]) => { const mean = values.subarray(at * columns, (at + 1) * columns).reduce((a, b) => a + b, 0) / columns; return h("span.badge", { data: { mean: name, value: String(mean) } }, `${name} ${number(mean, 3)}`); })));
    listeners.delete(draw.now);
    draw.now = now;
    listeners.add(now);
    now(state.at);
  }
  await draw(ask);
  const select = blocks.length > 1 && h("select.live", { "aria-label": "Layer", onchange: (event) => { state.block = event.target.value; keep(); draw(plainAsk); } }, blocks.map((block) => h("option", { value: block.name, selected: block.name === state.block }, block.name)));
  return h("section.card.stack", h("div.row.between", h("h2", "Gates and states"), select), h("p.soft", `${state.block}: a row for each token, a column for each unit; blue is positive, orange negative.`), note, strip, body);
}
