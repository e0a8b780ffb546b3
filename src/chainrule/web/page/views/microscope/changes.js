// What if: heads switched off, patterns set, activations of another text, a push; and what that changes.

import { ask as plainAsk } from "../../lib/api.js";
import { h, number, replace } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";
import { asPython, work } from "../../lib/parts.js";

export async function changedCard({ state, seen, listeners, reload }) {
  const { said, kl, moved, numbers } = seen.changed, table = h("div");
  const strip = h("div.tokens", { "aria-label": "How far each prediction moved" }, kl?.length === seen.pieces.length && seen.pieces.map((piece, i) => h("span.token", { css: { "--weight": `${Math.min(75, Math.round(140 * kl[i]))}%` }, data: { kl: String(kl[i]) }, title: `KL ${number(kl[i])} nats` }, visible(piece))));
  const word = seen.predicts ? "token" : "label";
  const draw = (chosen) => {
    if (numbers) return replace(table, h("p", seen.kind === "reward" ? "The reward " : "The cosine with the vector before ", "went from ", h("b", { data: { before: String(numbers[0]) } }, number(numbers[0])), " to ", h("b", { data: { after: String(numbers[1]) } }, number(numbers[1])), "."));
    const at = Math.min(chosen, kl.length - 1);
    return replace(table, h("p.small.soft", kl.length > 1 ? ["At ", h("code", visible(seen.pieces[at])), " the prediction"] : "What it says", ` moved by ${number(kl[at], 3)} nats (KL). Most of all:`),
    h("div.scroll", h("table.plain", h("thead", h("tr", h("th", word), h("th.num", "before"), h("th.num", "after"))), h("tbody", moved[at].map((each) => h("tr", { data: { moved: String(each.id) } }, h("td", h("code", visible(each.piece))),
      h("td.num", { data: { value: String(each.before) } }, `${number(100 * each.before, 3)} %`), h("td.num", { data: { value: String(each.after) }, class: `num ${each.after > each.before ? "good" : "bad"}` }, `${number(100 * each.after, 3)} %`)))))));
  };
  listeners.add(draw);
  draw(state.at);
  const remove = (i) => { state.edits = state.edits.filter((_, j) => j !== i); reload(); };
  return h("section.card.stack.changed", h("div.row.between", h("h2", "What you changed"), h("button.quiet.live", { onclick: () => { state.edits = []; reload(); } }, "Undo all")),
    h("div.row", said.map((text, i) => h("span.badge.backward", { data: { edit: String(i) } }, text, h("button.quiet.tight.live", { type: "button", "aria-label": `Undo: ${text}`, onclick: () => remove(i) }, "×")))),
    kl?.length === seen.pieces.length && [h("p.small.soft", "How far each prediction moved:"), strip], table);
}

/** A map of numbers as buttons, one row for each name; `onpick(i, j)`. */
function numberMap(names, columns, values, { label, most, signed = false, onpick, digits = 2 }) {
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, h("table.lens", columns && h("thead", h("tr", h("th", ""), columns.map((each) => h("th.mono", each)))),
    h("tbody", names.map((name, i) => h("tr", { data: { row: name } }, h("th.mono", name), values[i].map((x, j) => h("td", { class: `cell ${signed && x < 0 ? "backward" : "forward"}`, css: { "--weight": `${Math.min(75, Math.round((75 * Math.abs(x)) / most))}%` }, data: { value: String(x) } },
      h("button.cellbutton", { type: "button", title: String(x), "aria-label": `${name}, ${columns ? columns[j] : j}: ${number(x, 3)}`, onclick: () => onpick(i, j) }, number(x, digits)))))))));
}

export async function whatIfCard({ state, seen, given, keep, reload, fresh, signal }) {
  const blocks = seen.blocks.map((block) => block.name), last = blocks.at(-1);
  const middle = blocks[Math.floor(blocks.length / 2)], form = { block: middle, pushed: middle, part: "stream", other: state.other ?? "", here: false, towards: "", away: "", scale: "4" };
  const choose = (label, key, options) => h("label.field", label, h("select", { onchange: (event) => { form[key] = event.target.value; } }, options.map((each) => h("option", { value: each, selected: each === form[key] }, each))));
  const text = (label, key, extra = {}) => h("label.field", label, h("input", { value: form[key], oninput: (event) => { form[key] = event.target.value; if (key === "other") { state.other = form.other || null; keep(); } }, ...extra }));
  const add = (edit) => { state.edits = [...state.edits, edit]; reload(); };
  const target = seen.kind === "pair" ? { target: seen.target } : {}; // the same target for both sources
  const ofSource = (name) => seen.blocks.find((block) => block.name === name)?.of === "source";
  const map = h("div"), heads = h("div"), attends = seen.blocks.some((block) => block.heads.length);
  let python = "";

  const search = () => work(map, async ({ onjob }) => {
    const found = await plainAsk(`/api/microscope/patching?${given({ other: form.other, part: form.part, at: state.at, edits: null })}`, { onjob, signal });
    if (!fresh()) return undefined;
    python = found.python;
    return h("div.stack", h("p", "This text leads to ", h("code", visible(found.right.piece)), ", the other one to ", h("code", visible(found.wrong.piece)), ". The other text is read, with one activation of this one: how much of the difference comes back? Blue 1 is all of it. Choose a place to see what that activation does here."),
      numberMap(found.blocks, seen.pieces.map(visible), found.recovered, { label: "Recovered difference", most: 1, signed: true, onpick: (i, j) => add({ kind: "patch", block: found.blocks[i], text: form.other, at: j, part: found.part, ...target }) }), h("div.row", asPython(() => python)));
  });
  const without = (cross) => work(heads, async ({ onjob }) => {
    const found = await plainAsk(`/api/microscope/ablation?${given({ cross: cross || null, edits: null })}`, { onjob, signal });
    if (!fresh()) return undefined;
    const most = Math.max(...found.kl.flat(), 1e-9);
    return h("div.stack", h("p.small.soft", "How far the predictions move without each head, in nats (mean KL). Choose one to switch it off."),
      numberMap(found.blocks, found.kl[0].map((_, head) => `head ${head}`), found.kl, { label: "Without each head", most, digits: 3, onpick: (i, head) => add({ kind: "off", block: found.blocks[i], head, ...(cross ? { cross } : {}) }) }));
  });
  const patch = () => add({ kind: "patch", block: form.block, text: form.other, part: form.part, ...target, ...(form.here && !ofSource(form.block) ? { at: state.at } : {}) });
  return h("section.card.stack", h("h2", "What if"), h("p.soft", "Change something inside and see what the predictions do. Every change is part of the address."),
    h("div.grid2",
      h("div.stack", h("h3", "An activation of another text"), h("div.form", text("Another text, as many tokens", "other", { placeholder: seen.text }), choose("Block", "block", blocks), choose("Part", "part", ["stream", "attention", ...(seen.source ? ["cross_attention"] : []), "mlp"])),
        h("label.inline.small.soft", h("input", { type: "checkbox", onchange: (event) => { form.here = event.target.checked; } }), " only at the chosen token"),
        h("div.row", h("button", { type: "button", onclick: patch }, "Patch it in"), h("button", { type: "button", onclick: search }, "Try every place"))),
      h("div.stack", h("h3", "A push"), h("div.form", text("Towards a text", "towards"), text("away from a text", "away"), choose("Block", "pushed", blocks), text("Times", "scale", { inputmode: "decimal" })),
        h("div.row", h("button", { type: "button", onclick: () => add({ kind: "steer", block: form.pushed, towards: form.towards, away: form.away, scale: Number(form.scale) }) }, "Steer")))),
    map,
    attends && h("div.stack", h("h3", "Heads"), h("div.row", h("button", { type: "button", onclick: () => without(false) }, "Try without each head"), seen.source && h("button", { type: "button", onclick: () => without(true) }, "… that looks at the source")), heads),
    h("p.small.soft", last && `Heads are switched off, and their patterns edited, in “Where each head looks”. Blocks: ${blocks[0]} to ${last}.`));
}
