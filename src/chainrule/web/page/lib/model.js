// Choosing a model: a run with checkpoints and one of its steps, or an imported model.

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
  return empty("No model to look at yet", `Train a small one: it takes ${SECONDS} seconds, on text that every Python has. Its run has a button that leads back here. Or put an imported model into the directory of the Studio.`,
    h("button.main", { onclick: train }, "Train a small model"), h("a.button", { href: "/runs/new", data: { link: "" } }, "Choose what to train"));
}

/** A select of models and a slider over their checkpoints; `state` has `run` and `step`. */
export function chooser(models, state, onchange) {
  const steps = h("div");
  const drawSteps = () => {
    const found = models.find((each) => each.name === state.run)?.steps ?? [];
    const at = state.step === null ? found.length - 1 : Math.max(0, found.indexOf(state.step));
    const said = h("b.mono", state.step === null ? "the one in use" : `step ${count(found[at])}`);
    replace(steps, found.length > 1 ? h("label.field", h("span", "Checkpoint: ", said), h("input", { type: "range", min: "0", max: String(found.length), value: String(state.step === null ? found.length : at), "aria-label": "Checkpoint",
      oninput: (event) => { const i = Number(event.target.value); state.step = i >= found.length ? null : found[i]; said.textContent = state.step === null ? "the one in use" : `step ${count(state.step)}`; onchange(); } })) : null);
  };
  const known = models.some((each) => each.name === state.run);
  const select = h("select", { "aria-label": "Model", onchange: (event) => { state.run = event.target.value; state.step = null; drawSteps(); onchange(); } },
    known ? null : h("option", { value: "", selected: true, disabled: true }, `${state.run}: not here`),
    models.map((each) => h("option", { value: each.name, selected: each.name === state.run }, `${each.name} (${each.family}${each.steps.length ? "" : ", imported"})`)));
  drawSteps();
  return h("div.form", h("label.field", "Model", select), steps);
}

/** The run that an address names, also one that is gone, which the server then says; without one the first. */
export function chosen(models, params) {
  return { run: params.get("run") ?? models[0].name, step: params.has("step") ? Number(params.get("step")) : null };
}

export const visible = (piece) => piece.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣") || "∅";
