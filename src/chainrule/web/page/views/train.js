// Starting a training: a form that is checked by the rules of the command line as it is filled in, with a forecast.

import { go } from "../app.js";
import { ask } from "../lib/api.js";
import { count, debounce, h, replace } from "../lib/dom.js";
import { findingList } from "../lib/findings.js";
import { heading, permalink, problem } from "../lib/parts.js";

const OWN = ["family", "data", "budget", "steps", "name"];

export async function renderForm(place, { params, remember, signal, work }) {
  const known = await ask("/api/train");
  const form = { ...known.quick, options: {}, ...Object.fromEntries(OWN.filter((key) => params.has(key)).map((key) => [key, params.get(key)])) };
  for (const key of Object.keys(known.options)) if (params.get(key)) form.options[key] = params.get(key);
  if (form.steps) form.budget = "";
  const told = h("div"), wrong = h("div"), inputs = {}, notes = {}, labels = {};
  let turn = 0;

  /** A field with a place for what is wrong with it. */
  function field(key, label, input, ...more) {
    inputs[key] = input;
    input.setAttribute("aria-describedby", `wrong-${key}`);
    notes[key] = h("span.small.bad", { id: `wrong-${key}`, role: "status" });
    labels[key] = h("label.field", label, input, ...more, notes[key]);
    return labels[key];
  }
  const text = (key, put, extra = {}) => h("input", { name: key, value: form[key] ?? "", oninput: (event) => { put(event.target.value); changed(); }, ...extra });
  const own = (key, extra) => text(key, (value) => { form[key] = value; }, extra);
  const instead = (key, other, extra) => text(key, (value) => { form[key] = value; if (value) form[other] = inputs[other].value = ""; }, extra);
  const option = (key) => text(key, (value) => { form.options[key] = value; }, { value: form.options[key] ?? "" });
  const family = h("select", { name: "family", onchange: (event) => { form.family = event.target.value; changed(); } }, known.families.map((each) => h("option", { value: each, selected: each === form.family }, each)));
  const settings = h("details", { open: Object.keys(form.options).length > 0 || params.has("change") }, h("summary", "Sizes and settings"), h("div.form", Object.entries(known.options).map(([key, about]) => field(key, `${about} (${key})`, option(key)))));

  function changed() {
    const search = new URLSearchParams(OWN.filter((key) => form[key]).map((key) => [key, form[key]]));
    for (const [key, value] of Object.entries(form.options)) if (value) search.set(key, value);
    remember(search);
    replace(told);
    replace(wrong);
    soon();
  }

  /** What the command line would refuse, beside its fields; whether nothing is wrong. */
  async function check() {
    const mine = ++turn;
    const { problems, defaults } = await ask("/api/train/check", { body: form, signal });
    if (mine === turn) {
      for (const key of Object.keys(known.options)) {
        inputs[key].placeholder = defaults[key] ?? "";
        labels[key].hidden = !(key in defaults) && !form.options[key];
      }
      mark(problems);
    }
    return !problems.length;
  }
  const soon = debounce(250, () => check().catch((error) => replace(wrong, problem(error))));

  function mark(problems) {
    for (const [key, input] of Object.entries(inputs)) {
      const said = problems.find((each) => each.fields[0] === key), mine = problems.some((each) => each.fields.includes(key));
      replace(notes[key], said?.error);
      mine ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid");
      if (mine && settings.contains(input)) settings.open = true;
    }
    const loose = problems.filter((each) => !(each.fields[0] in inputs));
    replace(wrong, loose.map(problem));
    return problems.length > 0;
  }

  const first = () => Object.values(inputs).find((each) => each.getAttribute("aria-invalid"))?.focus();
  const refused = (error) => { if (error.fields?.length) { mark([{ error: error.message, fields: error.fields }]); first(); } else replace(wrong, problem(error)); };

  async function start(event) {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      if (await check()) {
        const { name } = await ask("/api/train", { body: form });
        go(`/runs/${encodeURIComponent(name)}`);
      } else first();
    } catch (error) {
      refused(error);
    }
    button.disabled = false;
  }

  const forecast = () => work(told, async ({ onjob, signal }) => {
    if (!(await check())) { first(); return []; }
    const found = await ask("/api/train/forecast", { body: form, onjob, signal });
    const sizes = Object.entries(found.sizes).filter(([key]) => ["n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size"].includes(key)).map(([key, value]) => `${key} ${value}`).join(", ");
    return h("div.card.stack", h("h2", "Forecast"), h("p", h("b", `${found.model} with `, h("span", { data: { parameters: String(found.parameters) } }, count(found.parameters)), " parameters"), ` (${sizes}), ${found.data}`), findingList(found.findings));
  });

  replace(place, heading("New run", "What is not filled in is chosen to fit the data and the time.", permalink(), h("a.button", { href: "/runs", data: { link: "" } }, "All runs")),
    h("div.card.stack",
      h("div.form", field("family", "Family", family), field("data", "Data: corpus or path", own("data", { list: "corpora" }), h("datalist", { id: "corpora" }, known.corpora.map((each) => h("option", { value: each.name }, each.about)))),
        field("budget", "Time in seconds", instead("budget", "steps", { placeholder: "such as 120 or 10m" })), field("steps", "or steps", instead("steps", "budget", { placeholder: "such as 2000", inputmode: "numeric" })), field("name", "Name of the run", own("name", { placeholder: "the family, if empty" }))),
      settings,
      h("div.row", h("button.main", { onclick: start }, "Start training"), h("button", { onclick: forecast }, "Forecast time and memory")),
      h("p.small.soft", "A run is a process of its own on this machine. It is stopped, and saved, when the Studio ends.")),
    wrong, told);
  await check();
  inputs[params.get("change")]?.focus();
}
