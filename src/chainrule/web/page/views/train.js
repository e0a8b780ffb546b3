// Starting a training: a form with a forecast of its time and memory.

import { go } from "../app.js";
import { ask } from "../lib/api.js";
import { count, h, replace } from "../lib/dom.js";
import { findingList } from "../lib/findings.js";
import { heading, permalink, problem } from "../lib/parts.js";

export async function renderForm(place, { params, remember, work }) {
  const known = await ask("/api/train");
  const form = { ...known.quick, options: {}, ...Object.fromEntries(["family", "data", "budget", "steps", "name"].filter((key) => params.has(key)).map((key) => [key, params.get(key)])) };
  for (const key of Object.keys(known.options)) if (params.get(key)) form.options[key] = params.get(key);
  if (form.steps) form.budget = "";
  const told = h("div"), wrong = h("div");
  const changed = () => {
    const search = new URLSearchParams();
    for (const key of ["family", "data", "budget", "steps", "name"]) if (form[key]) search.set(key, form[key]);
    for (const [key, value] of Object.entries(form.options)) if (value) search.set(key, value);
    remember(search);
    replace(told);
  };
  const field = (label, key, extra = {}) => h("label.field", label, h("input", { value: form[key] ?? "", name: key, oninput: (event) => { form[key] = event.target.value; changed(); }, ...extra }));
  const family = h("select", { name: "family", "aria-label": "Family", onchange: (event) => { form.family = event.target.value; changed(); } }, known.families.map((each) => h("option", { value: each, selected: each === form.family }, each)));
  const data = h("input", { name: "data", list: "corpora", value: form.data, oninput: (event) => { form.data = event.target.value; changed(); } });
  const minutes = h("input", { name: "budget", value: form.budget, placeholder: "such as 120 or 10m", oninput: (event) => { form.budget = event.target.value; if (form.budget) form.steps = steps.value = ""; changed(); } });
  const steps = h("input", { name: "steps", value: form.steps ?? "", placeholder: "such as 2000", inputmode: "numeric", oninput: (event) => { form.steps = event.target.value; if (form.steps) form.budget = minutes.value = ""; changed(); } });

  async function start(event) {
    event.target.disabled = true;
    try {
      const { name } = await ask("/api/train", { body: form });
      go(`/runs/${encodeURIComponent(name)}`);
    } catch (error) {
      replace(wrong, problem(error));
      event.target.disabled = false;
    }
  }

  const forecast = () => {
    replace(wrong);
    return work(told, async ({ onjob, signal }) => {
      const found = await ask("/api/train/forecast", { body: form, onjob, signal });
      const sizes = Object.entries(found.sizes).filter(([key]) => ["n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size"].includes(key)).map(([key, value]) => `${key} ${value}`).join(", ");
      return h("div.card.stack", h("h2", "Forecast"), h("p", h("b", `${found.model} with `, h("span", { data: { parameters: String(found.parameters) } }, count(found.parameters)), " parameters"), ` (${sizes}), ${found.data}`), findingList(found.findings));
    });
  };

  replace(place, heading("New run", "What is not filled in is chosen to fit the data and the time.", permalink(), h("a.button", { href: "/runs", data: { link: "" } }, "All runs")),
    h("div.card.stack",
      h("div.form", h("label.field", "Family", family), h("label.field", "Data: corpus or path", data), h("datalist", { id: "corpora" }, known.corpora.map((each) => h("option", { value: each.name }, each.about))),
        h("label.field", "Time in seconds", minutes), h("label.field", "or steps", steps), field("Name of the run", "name", { placeholder: "the family, if empty" })),
      h("details", h("summary", "Sizes and settings"), h("div.form", Object.entries(known.options).map(([key, about]) => h("label.field", `${about} (${key})`, h("input", { name: key, value: form.options[key] ?? "", placeholder: "default", oninput: (event) => { form.options[key] = event.target.value; changed(); } }))))),
      h("div.row", h("button.main", { onclick: start }, "Start training"), h("button", { onclick: forecast }, "Forecast time and memory")),
      h("p.small.soft", "A run is a process of its own on this machine. It is stopped, and saved, when the Studio ends.")),
    wrong, told);
}
