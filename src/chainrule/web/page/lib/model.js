// Choosing a model: a run with checkpoints, and one of its steps.

import { go } from "../app.js";
import { ask } from "./api.js";
import { count, h, replace } from "./dom.js";
import { empty, toast } from "./parts.js";

const SECONDS = "40";

/** What to show when there is no model: a button that trains one. */
export function noModels() {
  const train = async (event) => {
    event.target.disabled = true;
    try {
      const { quick } = await ask("/api/train");
      const { name } = await ask("/api/train", { body: { ...quick, budget: SECONDS } });
      go(`/runs/${encodeURIComponent(name)}`);
    } catch (error) {
      event.target.disabled = false;
      toast(error.message);
    }
  };
  return empty("No model to look at yet", `Train a small one: it takes ${SECONDS} seconds, on text that every Python has. Its run has a button that leads back here.`,
    h("button.main", { onclick: train }, "Train a small model"), h("a.button", { href: "/runs/new", data: { link: "" } }, "Choose what to train"));
}

/** A select of models and a slider over their checkpoints; `state` has `run` and `step`. */
export function chooser(models, state, onchange) {
  const steps = h("div");
  const drawSteps = () => {
    const found = models.find((each) => each.name === state.run);
    const at = state.step === null ? found.steps.length - 1 : Math.max(0, found.steps.indexOf(state.step));
    const said = h("b.mono", state.step === null ? "the one in use" : count(found.steps[at]));
    replace(steps, found.steps.length > 1 ? h("label.field", h("span", "Checkpoint: ", said), h("input", { type: "range", min: "0", max: String(found.steps.length), value: String(state.step === null ? found.steps.length : at), "aria-label": "Checkpoint",
      oninput: (event) => { const i = Number(event.target.value); state.step = i >= found.steps.length ? null : found.steps[i]; said.textContent = state.step === null ? "the one in use" : `step ${count(state.step)}`; onchange(); } })) : null);
  };
  const select = h("select", { "aria-label": "Model", onchange: (event) => { state.run = event.target.value; state.step = null; drawSteps(); onchange(); } },
    models.map((each) => h("option", { value: each.name, selected: each.name === state.run }, `${each.name} (${each.family})`)));
  drawSteps();
  return h("div.form", h("label.field", "Model", select), steps);
}

/** The run that an address names, or the first. */
export function chosen(models, params) {
  const run = models.some((each) => each.name === params.get("run")) ? params.get("run") : models[0].name;
  return { run, step: params.has("step") ? Number(params.get("step")) : null };
}

export const visible = (piece) => piece.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣") || "∅";
