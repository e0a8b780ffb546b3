// The playground: a continuation token by token; choose another token to branch off.

import { remember } from "../app.js";
import { ask } from "../lib/api.js";
import { count, h, number, replace } from "../lib/dom.js";
import { chooser, chosen, noModels, visible } from "../lib/model.js";
import { asPython, heading, permalink, work } from "../lib/parts.js";

export async function render(place, { params }) {
  place.classList.add("stack-large");
  const models = await ask("/api/models?write=true");
  if (!models.length) {
    replace(place, heading("Playground", "Let a model write, and see what else it could have written."), noModels());
    return;
  }
  const numbers = { temperature: ["Temperature", "0.8"], top_k: ["Top k", ""], top_p: ["Top p", "1"], seed: ["Seed", "0"] };
  const state = { ...chosen(models, params), prompt: params.get("prompt"), length: Number(params.get("length") ?? 120), options: Object.fromEntries(Object.entries(numbers).map(([key, [, usual]]) => [key, params.get(key) ?? usual])) };
  state.ids = params.has("ids") ? params.get("ids").split(".").map(Number) : null;
  let found = null, at = null;
  const result = h("div.stack-large");
  const keep = () => {
    const search = new URLSearchParams({ run: state.run, length: state.length });
    if (state.prompt !== null) search.set("prompt", state.prompt);
    if (state.step !== null) search.set("step", state.step);
    if (state.ids) search.set("ids", state.ids.join("."));
    for (const [key, value] of Object.entries(state.options)) if (value !== numbers[key][1]) search.set(key, value);
    remember(search);
  };
  const write = () => {
    keep();
    return work(result, async ({ onjob }) => {
      found = await ask("/api/playground", { body: { run: state.run, step: state.step, prompt: state.prompt, ids: state.ids, length: state.length, options: state.options }, onjob });
      if (state.prompt === null) field.value = state.prompt = found.asked;
      keep();
      if (at === null || at >= found.tokens.length) at = Math.min(found.prompt, found.tokens.length - 1);
      return draw();
    }, { keep: result.childElementCount > 0 });
  };
  const field = h("textarea", { rows: "2", value: state.prompt ?? "", "aria-label": "Prompt", onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); begin(); } }, oninput: () => { state.prompt = field.value; } });
  const begin = () => { state.ids = null; at = null; write(); };
  replace(place, heading("Playground", "Let a model write. Every token shows how likely it was; choose another one to branch off there.", permalink(), asPython(() => found?.python ?? "")),
    h("div.card.stack", chooser(models, state, () => { state.ids = null; keep(); }), h("label.field", "Prompt", field),
      h("div.form.tight", Object.entries(numbers).map(([key, [label]]) => h("label.field", label, h("input", { name: key, value: state.options[key], inputmode: "decimal", placeholder: "all", onchange: (event) => { state.options[key] = event.target.value.trim(); } }))),
        h("label.field", "Tokens", h("input", { name: "length", type: "number", min: "1", max: "400", value: String(state.length), onchange: (event) => { state.length = Number(event.target.value) || 1; } }))),
      h("div.row", h("button.main", { onclick: begin }, "Write"), h("span.small.soft", "or Ctrl + Enter in the prompt"))),
    result);

  function branch(id) {
    state.ids = [...found.tokens.slice(0, at).map((token) => token.id), id];
    at = state.ids.length - 1;
    write();
  }

  function draw() {
    const text = h("div.written", { role: "listbox", tabindex: "0", "aria-label": "Tokens of the text", onkeydown: (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(found.tokens.length - 1, to));
      replace(result, draw());
      result.querySelector(".written").focus();
    } }, found.tokens.map((token, i) => h("span", { role: "option", "aria-selected": i === at ? "true" : "false", class: `wtoken${token.given ? " given" : ""}`, css: { "--weight": `${token.p === null ? 0 : Math.round(60 * (1 - token.p))}%` }, data: { id: String(token.id), p: String(token.p) },
      title: token.p === null ? "the first token" : `${number(100 * token.p, 3)} %`, onclick: () => { at = i; replace(result, draw()); } }, token.piece === "\n" ? "⏎\n" : token.piece)));
    const token = found.tokens[at];
    const side = h("section.card.stack", h("h2", "What else"), token.top.length ? [h("p.soft", "At ", h("code", visible(token.piece)), " the model expected these. Choose one to go on from there."),
      h("div.bars", token.top.map((each) => h("button", { type: "button", class: `chance${each.id === token.id ? " right" : ""}`, data: { id: String(each.id), p: String(each.p) }, onclick: () => branch(each.id) }, h("code", visible(each.piece)), h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`))))]
      : h("p.soft", "Nothing comes before the first token: choose another one."));
    return h("div.grid2.uneven", h("section.card.stack", h("div.row.between", h("h2", "The text"), h("div.row", state.ids && h("button.quiet", { onclick: begin }, "Back to the prompt"), h("span.badge", `${count(found.tokens.length - found.prompt)} new tokens`), found.full && h("span.badge.backward", "context is full"))),
      h("p.small.soft", "The stronger the color, the less likely the token was."), text), side);
  }
  await write();
}
