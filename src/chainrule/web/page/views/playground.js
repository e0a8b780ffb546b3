// The playground: completions, chat, translations, filled gaps and beams; choose another token to branch off.

import { ask } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { chooser, chosen, noModels } from "../lib/model.js";
import { asPython, heading, permalink } from "../lib/parts.js";
import { drawBeams } from "./playground/beams.js";
import { drawGaps } from "./playground/gaps.js";
import { drawTranslation } from "./playground/translation.js";
import { drawText } from "./playground/written.js";

const NUMBERS = { temperature: ["Temperature", "0.8"], top_k: ["Top k", ""], top_p: ["Top p", "1"], min_p: ["Min p", "0"], seed: ["Seed", "0"] };
const WORDS = { next: ["Prompt", "Write"], pair: ["Source", "Translate"], masked: ["Text, with [MASK] for each gap", "Fill"] };

function messagesOf(text) {
  try {
    const found = JSON.parse(text);
    return Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

export async function render(place, { params, remember, work }) {
  place.classList.add("stack-large");
  const models = await ask("/api/models");
  if (!models.length && !params.has("run")) {
    replace(place, heading("Playground", "Let a model write, and see what else it could have written."), noModels());
    return undefined;
  }
  const state = { ...chosen(models, params), prompt: params.get("prompt"), length: Number(params.get("length") ?? 120), beam: Number(params.get("beam") ?? 0), messages: messagesOf(params.get("messages")),
    options: Object.fromEntries(Object.entries(NUMBERS).map(([key, [, usual]]) => [key, params.get(key) ?? usual])) };
  state.ids = params.has("ids") ? params.get("ids").split(".").map(Number) : null;
  let found = null;
  const result = h("div.stack-large"), talk = h("div");

  const keep = () => {
    const search = new URLSearchParams({ run: state.run, length: state.length });
    if (state.prompt !== null && !state.messages) search.set("prompt", state.prompt);
    if (state.step !== null) search.set("step", state.step);
    if (state.ids) search.set("ids", state.ids.join("."));
    if (state.beam) search.set("beam", state.beam);
    if (state.messages) search.set("messages", JSON.stringify(state.messages));
    for (const [key, value] of Object.entries(state.options)) if (value !== NUMBERS[key][1]) search.set(key, value);
    remember(search);
  };
  const write = () => {
    keep();
    return work(result, async ({ onjob, signal }) => {
      const body = { run: state.run, step: state.step, prompt: state.messages ? null : state.prompt, ids: state.ids, length: state.length, beam: state.beam, messages: state.messages, options: state.options };
      found = await ask("/api/playground", { body, onjob, signal });
      if (state.prompt === null && !state.messages) field.value = state.prompt = found.asked;
      keep();
      drawForm();
      return draw();
    }, { keep: result.childElementCount > 0 });
  };
  const field = h("textarea", { rows: "2", value: state.prompt ?? "", "aria-label": "Prompt", onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); begin(); } }, oninput: () => { state.prompt = field.value; } });
  const label = h("span", "Prompt"), button = h("button.main", { onclick: () => begin() }, "Write"), sampling = h("div.form.tight"), modes = h("div.row.live");
  const begin = () => { state.ids = null; return write(); };
  const branch = (ids) => { state.ids = ids; return write(); };

  function say() {
    const said = field.value.trim();
    if (!said) return;
    const before = state.messages ?? [];
    const told = found?.answer !== undefined && before.length ? [...before, { role: "assistant", content: found.answer.trim() }] : before;
    state.messages = [...told, { role: "user", content: said }];
    field.value = "";
    state.ids = null;
    found = { ...found, answer: undefined };
    write();
  }

  function drawForm() {
    const [name, verb] = state.messages ? ["Your message", "Send"] : WORDS[found?.kind ?? "next"];
    label.textContent = name;
    button.textContent = state.beam && found?.kind === "next" ? "Search" : verb;
    button.onclick = state.messages ? say : begin;
    const mode = (text, on, act) => h("button.chip", { type: "button", "aria-pressed": on ? "true" : "false", onclick: act }, text);
    const to = (change) => () => { Object.assign(state, { ids: null }, change); drawForm(); if (!change.messages) write(); else { replace(result); replace(talk); field.value = ""; keep(); field.focus(); } };
    replace(modes, found?.kind === "next" && [mode("Draw tokens", !state.beam && !state.messages, to({ beam: 0, messages: null })), mode("Search with beams", state.beam > 0, to({ beam: 4, messages: null })), found.chat && mode("Chat", Boolean(state.messages), to({ beam: 0, messages: [] }))],
      found?.kind === "pair" && [mode("Likeliest token each time", state.beam < 2, to({ beam: 0 })), mode("Search with beams", state.beam > 1, to({ beam: 4 }))]);
    const draws = found?.kind !== "masked" && !(found?.kind === "pair") && !state.beam;
    replace(sampling, draws && Object.entries(NUMBERS).map(([key, [text]]) => h("label.field", text, h("input", { name: key, value: state.options[key], inputmode: "decimal", placeholder: "all", onchange: (event) => { state.options[key] = event.target.value.trim(); } }))),
      state.beam > 0 && h("label.field", "Beams", h("input", { name: "beam", type: "number", min: "1", max: "8", value: String(state.beam), onchange: (event) => { state.beam = Math.max(1, Number(event.target.value) || 1); } })),
      found?.kind !== "masked" && h("label.field", "Tokens", h("input", { name: "length", type: "number", min: "1", max: "400", value: String(state.length), onchange: (event) => { state.length = Number(event.target.value) || 1; } })));
    replace(talk, state.messages?.length ? h("div.talk", state.messages.map((message) => h("div", { class: `turn ${message.role}` }, h("span.small.soft", message.role), h("div", message.content))), found?.answer !== undefined && h("div.turn.assistant", h("span.small.soft", "assistant"), h("div", { data: { answer: "" } }, found.answer.trim() || "(nothing)"))) : null);
  }

  function draw() {
    if (found.kind === "masked") return drawGaps(found);
    if (found.kind === "pair") return drawTranslation(found, { state, branch, begin });
    if (found.tree) return drawBeams(found);
    return drawText(found, { state, branch, begin });
  }

  replace(place, heading("Playground", "Let a model write. Every token shows how likely it was; choose another one to branch off there.", permalink(), asPython(() => found?.python ?? "")),
    h("div.card.stack", chooser(models, state, () => { Object.assign(state, { ids: null, messages: null, beam: 0, prompt: null }); found = null; write(); }), modes, talk, h("label.field", label, field), sampling,
      h("div.row.live", button, h("span.small.soft", "or Ctrl + Enter in the text"))),
    result);
  drawForm();
  if (!state.messages?.length) state.messages = null;
  await write();
  return undefined;
}
