// The microscope: a text as a model reads it. Tokens, predictions, attention, where they come from, and what if.

import { ask, query } from "../lib/api.js";
import { debounce, h, number, replace } from "../lib/dom.js";
import { chooser, chosen, noModels, visible } from "../lib/model.js";
import { asPython, heading, permalink } from "../lib/parts.js";
import { attentionCard, gatesCard } from "./microscope/attention.js";
import { causesCard } from "./microscope/causes.js";
import { changedCard, whatIfCard } from "./microscope/changes.js";
import { neuronsCard, normsCard, windowCard } from "./microscope/flow.js";
import { architectureCard, headsCard, lensCard } from "./microscope/inside.js";
import { about, dressed, drawSaid } from "./microscope/outputs.js";
import { sidesCard } from "./microscope/sides.js";
import { bagCard, wordsCard } from "./microscope/words.js";

const TITLES = { attention: "Attention", causes: "Where it comes from", whatIf: "What if", lens: "Logit lens", norms: "Stream", neurons: "Neurons", heads: "What heads look for", sides: "Side by side", architecture: "Architecture" };

const whole = (params, key) => (params.has(key) ? Number(params.get(key)) : null);

function edits(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

export async function render(place, { params, remember, signal: left, work }) {
  place.classList.add("stack-large");
  const models = await ask("/api/models?all=true");
  if (!models.length && !params.has("run")) {
    replace(place, heading("Microscope", "Look inside a model while it reads."), noModels());
    return undefined;
  }
  const state = { ...chosen(models, params), text: params.get("text"), target: params.get("target"), at: whole(params, "at"), token: whole(params, "token"), block: params.get("block"), cross: params.get("cross") === "true",
    head: whole(params, "head") ?? 0, neurons: params.get("neurons"), edits: edits(params.get("edits")), against: params.get("against"), against_step: whole(params, "against_step"), other: params.get("other") };
  let seen = null, turn = 0, stop = new AbortController();
  const strip = h("div.tokens", { role: "listbox", "aria-label": "Tokens", tabindex: "0", onkeydown: keys }), intro = h("div.stack"), next = h("div"), wrong = h("div"), body = h("div.stack-large");
  const slots = Object.fromEntries(["changed", "attention", "causes", "whatIf", "lens", "norms", "neurons", "heads", "sides", "architecture"].map((name) => [name, h("div", { data: { part: name } })]));
  const field = h("textarea", { rows: "2", value: state.text ?? "", "aria-label": "Text", oninput: debounce(300, () => { state.text = field.value; state.target = state.at = state.token = null; load(); }) });
  const answer = h("textarea", { rows: "2", value: state.target ?? "", "aria-label": "Target", oninput: debounce(300, () => { state.target = answer.value; state.at = state.token = null; load(); }) });
  const label = h("span", "Text"), jump = h("nav.row.jump", { "aria-label": "Parts of this page" }), second = h("label.field", { hidden: true }, "Target: what the decoder has written so far", answer), source = h("div");

  const given = (more = {}) => query({ run: state.run, step: state.step, text: state.text, target: state.target, edits: state.edits.length ? JSON.stringify(state.edits) : null, ...more });
  function keep() {
    remember(new URLSearchParams(given({ at: state.at, token: state.token, block: state.block, cross: state.cross || null, head: state.head || null, neurons: state.neurons, against: state.against, against_step: state.against_step, other: state.other })));
  }

  replace(place, heading("Microscope", "A text as the model reads it: what it expects at every token, where each head looks, and when it makes up its mind.", permalink(), asPython(() => seen?.python ?? "")),
    h("div.card.stack", chooser(models, state, () => { state.block = state.token = state.neurons = null; state.edits = []; load(); }), h("label.field", label, field), second, jump), wrong, body);
  replace(body,
    h("section.card.stack", intro, source, strip, next),
    Object.values(slots));

  function keys(event) {
    const to = { ArrowRight: state.at + 1, ArrowLeft: state.at - 1, Home: 0, End: seen?.tokens.length - 1 }[event.key];
    if (to === undefined || !seen) return;
    event.preventDefault();
    pick(Math.max(0, Math.min(seen.tokens.length - 1, to)));
  }

  const listeners = new Set();
  function pick(at) {
    state.at = at;
    if (seen.kind !== "bag") state.token = null; // the label of a bag of words is that of the whole text
    keep();
    drawStrip();
    drawNext();
    for (const each of listeners) each(at);
  }

  function drawStrip() {
    replace(source, seen.source && h("div", h("p.small.soft", "Source"), h("div.tokens.small", { data: { source: "" } }, seen.source.map((piece) => h("span.token", { css: { "--weight": "0%" } }, visible(piece))))), seen.source && h("p.small.soft", "Target"));
    replace(strip, seen.pieces.map((piece, i) => {
      if (!seen.predicts) {
        const { weight, up, title, word, data } = dressed(seen, i, state.token);
        return h("button", { type: "button", role: "option", tabindex: "-1", class: `token${up ? " look" : ""}`, "aria-selected": i === state.at ? "true" : "false", css: { "--weight": `${Math.round(weight)}%` }, data: { at: String(i), ...data }, title, onclick: () => pick(i) }, visible(piece), word && h("small.tag", word));
      }
      const loss = seen.kind === "masked" ? seen.loss[i] : i ? seen.loss[i - 1] : null;
      return h("button", { type: "button", role: "option", tabindex: "-1", class: "token", "aria-selected": i === state.at ? "true" : "false", css: { "--weight": `${loss === null ? 0 : Math.min(70, loss * 14)}%` },
        data: { loss: String(loss), at: String(i) }, title: loss === null ? "the first token" : `−ln P = ${number(loss)}`, onclick: () => pick(i) }, visible(piece));
    }));
  }

  function drawNext() {
    if (!seen.predicts) {
      drawSaid(next, { seen, state, keep, hear: () => { drawStrip(); for (const each of listeners) each(state.at); } });
      return;
    }
    const top = seen.top[state.at], target = seen.targets[state.at];
    const known = target >= 0 && state.at + 1 < seen.pieces.length;
    const before = seen.kind === "masked" ? ["Here stands ", h("code", visible(seen.pieces[state.at])), ` (rank ${seen.rank[state.at] + 1}). From both sides it expects:`]
      : ["After ", h("code", visible(seen.pieces.slice(Math.max(0, state.at - 12), state.at + 1).join(""))), known ? [" comes ", h("code", visible(seen.pieces[state.at + 1])), ` (rank ${seen.rank[state.at] + 1}).`] : " the text ends.", " Expected:"];
    const choose = (id) => { state.token = id; keep(); drawNext(); for (const each of listeners) each(state.at); };
    replace(next, h("p", before),
      h("div.bars", top.map((each) => h("button", { type: "button", data: { id: String(each.id), p: String(each.p) }, class: `chance${each.id === target ? " right" : ""}`, "aria-pressed": each.id === (state.token ?? top[0].id) ? "true" : "false", title: "Show where this comes from", onclick: () => choose(each.id) },
        h("code", visible(each.piece)), h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`)))),
      h("p.small.soft", `Entropy ${number(seen.entropy[state.at])} nats: as undecided as among ${number(Math.exp(seen.entropy[state.at]), 3)} equal choices.`));
  }

  async function load() {
    if (left.aborted) return;
    const mine = ++turn;
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    listeners.clear();
    keep();
    const fine = await work(wrong, async ({ onjob }) => {
      const found = await ask(`/api/microscope/view?${given()}`, { onjob, signal });
      if (mine !== turn) return undefined;
      seen = found;
      if (state.text === null) { state.text = found.text; field.value ||= found.text; } // not over what a person writes meanwhile
      if (state.target === null && found.target !== null) state.target = found.target;
      if (document.activeElement !== answer) answer.value = found.target ?? "";
      second.hidden = found.kind !== "pair";
      label.textContent = found.kind === "pair" ? "Source" : "Text";
      return [];
    }, { keep: true });
    if (mine !== turn) return;
    body.hidden = !fine;
    if (!fine) {
      if (state.edits.length) wrong.append(h("div.row.undo", h("button", { type: "button", onclick: () => { state.edits = state.edits.slice(0, -1); load(); } }, "Undo the last change")));
      return;
    }
    if (state.at === null || state.at >= seen.tokens.length) state.at = seen.tokens.length - 1;
    keep();
    let tell = null;
    const scores = new Promise((done) => { tell = done; }); // of all heads: the last parts compute them, the first show them
    const shared = { models, scores, tell, state, seen, given, keep, listeners, pick, reload: load, work, fresh: () => mine === turn, signal };
    replace(intro, about(seen));
    drawStrip();
    drawNext();
    const flat = ["bag", "words"].includes(seen.kind);
    const { blocks } = seen, attends = blocks.some((block) => block.heads.length), recurs = blocks.some((block) => block.recurrent);
    const cards = { changed: state.edits.length ? changedCard : null, attention: attends ? attentionCard : recurs ? gatesCard : seen.window ? windowCard : null, causes: { bag: bagCard, words: wordsCard }[seen.kind] ?? causesCard, whatIf: seen.predicts && blocks.length ? whatIfCard : null, lens: seen.lens ? lensCard : null,
      norms: blocks.length ? normsCard : null, neurons: blocks.some((block) => block.neurons) ? neuronsCard : null, heads: attends ? headsCard : null, sides: seen.predicts ? sidesCard : null, architecture: flat ? null : architectureCard };
    for (const [name, card] of Object.entries(cards)) if (!card) replace(slots[name]);
    replace(jump, Object.entries(TITLES).filter(([name]) => cards[name] && !flat).map(([name, title]) => h("button.chip", { type: "button", onclick: () => slots[name].scrollIntoView({ behavior: "smooth" }) }, title)));
    for (const [name, card] of Object.entries(cards)) {
      if (!card) continue;
      await work(slots[name], ({ onjob }) => card({ ...shared, ask: (path, options = {}) => ask(path, { onjob, signal, ...options }) }), { keep: slots[name].childElementCount > 0, quiet: () => mine !== turn });
      if (mine !== turn) return;
    }
  }

  left.addEventListener("abort", () => { turn += 1; stop.abort(); });
  addEventListener("theme", () => load(), { signal: left });
  await load();
  return undefined;
}
