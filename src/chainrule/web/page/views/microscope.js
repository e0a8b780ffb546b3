// The microscope: a text as a model reads it. Tokens, predictions, attention, the logit lens, heads, architecture.

import { remember } from "../app.js";
import { ask, query } from "../lib/api.js";
import { debounce, h, number, replace } from "../lib/dom.js";
import { chooser, chosen, noModels, visible } from "../lib/model.js";
import { asPython, heading, permalink, problem, work } from "../lib/parts.js";
import { architectureCard, headsCard, lensCard } from "./inside.js";
import { attentionCard, gatesCard } from "./attention.js";

export async function render(place, { params }) {
  place.classList.add("stack-large");
  const models = await ask("/api/models");
  if (!models.length) {
    replace(place, heading("Microscope", "Look inside a model while it reads."), noModels());
    return undefined;
  }
  const state = { ...chosen(models, params), text: params.get("text"), at: params.has("at") ? Number(params.get("at")) : null, block: params.get("block"), head: Number(params.get("head") ?? 0), off: new Set((params.get("off") ?? "").split(",").filter(Boolean)) };
  let seen = null, turn = 0;
  const strip = h("div.tokens", { role: "listbox", "aria-label": "Tokens", tabindex: "0", onkeydown: keys }), next = h("div"), wrong = h("div"), change = h("div");
  const attention = h("div"), lens = h("div"), heads = h("div"), architecture = h("div"), body = h("div.stack-large");
  const field = h("textarea", { rows: "2", value: state.text ?? "", "aria-label": "Text", oninput: debounce(300, () => { state.text = field.value; state.at = null; load(); }) });

  const given = (more = {}) => query({ run: state.run, step: state.step, text: state.text, off: [...state.off].join(",") || null, ...more });
  function keep() {
    const search = new URLSearchParams(given({ at: state.at, block: state.block, head: state.head || null }));
    remember(search);
  }

  replace(place, heading("Microscope", "A text as the model reads it: what it expects at every token, where each head looks, and when it makes up its mind.", permalink(), asPython(() => seen?.python ?? "")),
    h("div.card.stack", chooser(models, state, () => { state.block = null; state.off.clear(); load(); }), h("label.field", "Text", field)), wrong, body);
  replace(body,
    h("section.card.stack", h("h2", "What it expects"), h("p.soft", "The darker a token, the more it surprised the model. Choose one to see what was expected to follow it."), change, strip, next),
    attention, lens, heads, architecture);

  function keys(event) {
    const to = { ArrowRight: state.at + 1, ArrowLeft: state.at - 1, Home: 0, End: seen?.tokens.length - 1 }[event.key];
    if (to === undefined || !seen) return;
    event.preventDefault();
    pick(Math.max(0, Math.min(seen.tokens.length - 1, to)));
  }

  const listeners = new Set();
  function pick(at) {
    state.at = at;
    keep();
    drawStrip();
    drawNext();
    for (const each of listeners) each(at);
  }

  function drawStrip() {
    replace(strip, seen.pieces.map((piece, i) => {
      const loss = seen.next ? (i ? seen.loss[i - 1] : null) : seen.loss[i];
      return h("button", { type: "button", role: "option", tabindex: "-1", class: "token", "aria-selected": i === state.at ? "true" : "false", css: { "--weight": `${loss === null ? 0 : Math.min(70, loss * 14)}%` },
        data: { loss: String(loss), at: String(i) }, title: loss === null ? "the first token" : `−ln P = ${number(loss)}`, onclick: () => pick(i) }, visible(piece));
    }));
  }

  function drawNext() {
    const top = seen.top[state.at], target = seen.targets[state.at];
    const known = target >= 0 && state.at + 1 < seen.pieces.length;
    const before = seen.next ? ["After ", h("code", visible(seen.pieces.slice(Math.max(0, state.at - 12), state.at + 1).join(""))), known ? [" comes ", h("code", visible(seen.pieces[state.at + 1])), ` (rank ${seen.rank[state.at] + 1}).`] : " the text ends.", " Expected:"]
      : ["Here stands ", h("code", visible(seen.pieces[state.at])), ` (rank ${seen.rank[state.at] + 1}). From both sides it expects:`];
    replace(next, h("p", before),
      h("div.bars", top.map((each) => h("div", { data: { id: String(each.id), p: String(each.p) }, class: `chance${each.id === target ? " right" : ""}` }, h("code", visible(each.piece)), h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`)))),
      h("p.small.soft", `Entropy ${number(seen.entropy[state.at])} nats: as undecided as among ${number(Math.exp(seen.entropy[state.at]), 3)} equal choices.`));
  }

  async function load() {
    const mine = ++turn;
    listeners.clear();
    keep();
    await work(wrong, async ({ onjob }) => {
      const found = await ask(`/api/microscope/view?${given()}`, { onjob });
      if (mine !== turn) return undefined;
      seen = found;
      if (state.text === null) field.value = state.text = found.text;
      keep();
      return [];
    }, { keep: true }).then((fine) => { body.hidden = !fine; });
    if (mine !== turn || body.hidden) return;
    if (state.at === null || state.at >= seen.tokens.length) state.at = seen.tokens.length - 1;
    const shared = { state, seen, given, keep, listeners, pick, reload: load, fresh: () => mine === turn };
    replace(change, state.off.size ? h("div.row", h("span.badge.backward", `off: ${[...state.off].join(", ")}`), h("span.small.soft", `the predictions moved by ${number(Math.max(...seen.kl), 3)} nats at most (KL)`),
      h("button.quiet", { onclick: () => { state.off.clear(); load(); } }, "Switch all heads on")) : null);
    drawStrip();
    drawNext();
    const attends = seen.blocks.some((block) => block.heads.length), recurs = seen.blocks.some((block) => block.recurrent);
    const parts = [[attention, attends ? attentionCard : recurs ? gatesCard : null], [lens, lensCard], [heads, attends ? headsCard : null], [architecture, architectureCard]];
    for (const [slot, card] of parts) {
      if (!card) { replace(slot); continue; }
      try {
        const made = await card(shared);
        if (mine !== turn) return;
        replace(slot, made);
      } catch (error) {
        if (mine !== turn) return;
        replace(slot, h("section.card", problem(error)));
      }
    }
  }

  const repaint = () => load();
  addEventListener("theme", repaint);
  await load();
  return () => { turn += 1; removeEventListener("theme", repaint); };
}
