// Home: three ways in, and what is here.

import { go } from "../app.js";
import { ask } from "../lib/api.js";
import { count, h, number, replace } from "../lib/dom.js";
import { problem } from "../lib/parts.js";
import { stateBadge } from "./runs.js";

const card = (glyph, title, text, action) => [h("span.glyph", { "aria-hidden": "true" }, glyph), h("h2", title), h("p.soft", text), h("span.more", action, " →")];

export async function render(place) {
  const here = h("section"), also = h("section"), wrong = h("div");
  const train = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const { quick } = await ask("/api/train");
      const { name } = await ask("/api/train", { body: quick });
      go(`/runs/${encodeURIComponent(name)}`);
    } catch (error) {
      button.disabled = false;
      replace(wrong, problem(error));
    }
  };
  replace(place,
    h("div.hero", h("h1", "Look inside."), h("p.lead", "Chainrule is a transformer stack in which every gradient was derived by hand. The Studio shows it: each number beside its formula, its code and its check.")),
    h("div.grid3",
      h("button.card.way", { type: "button", onclick: train }, card("∿", "Train something in two minutes",
        "A small language model on text that every Python has. Watch its curves, what it writes, and what the doctor says.", "Start training now")),
      h("a.card.way", { href: "/microscope", data: { link: "" } }, card("◎", "Look inside a model",
        "What it expects at every token, where each head looks, and when it makes up its mind.", "Open the microscope")),
      h("a.card.way", { href: "/calculus", data: { link: "" } }, card("∂", "Start from one number and its gradient",
        "Write an expression, step through its graph forward and backward, and see that every gradient is right.", "Open the calculus"))),
    h("p", "New to all this? ", h("a", { href: "/lessons", data: { link: "" } }, "Twenty lessons"), " lead from one number to a model that follows preferences. Looking something up? ", h("a", { href: "/calculus/ops", data: { link: "" } }, "Every op"), " has a page with its gradient and a check, from ", h("a", { href: "/calculus/ops/softmax", data: { link: "" } }, "softmax"), " to ", h("a", { href: "/calculus/ops/attention", data: { link: "" } }, "attention"), "."),
    wrong, here, also);
  place.classList.add("stack-large");
  const [found, models, { corpora }] = await Promise.all([ask("/api/runs"), ask("/api/models?all=true"), ask("/api/train")]);
  const imported = models.filter((each) => !each.steps.length);
  replace(also, h("div.grid2",
    h("section.card.stack", h("h2", "Imported models"), imported.length ? h("div.row", imported.slice(0, 8).map((each) => h("a.chip", { href: `/microscope?run=${encodeURIComponent(each.name)}`, data: { link: "" } }, each.name)))
      : h("p.soft", "None yet: put a directory of Hugging Face or a .gguf file into ", h("code", `${found.folder}/`), ", and it can be looked at.")),
    h("section.card.stack", h("h2", "Texts to train on"), h("div.row", corpora.map((each) => h("a.chip", { href: `/runs/new?data=${encodeURIComponent(each.name)}&budget=120`, data: { link: "" }, title: each.about }, each.name))))));
  if (found.runs.length) {
    replace(here, h("div.card.stack", h("div.row.between", h("h2", "Your runs"), h("a", { href: "/runs", data: { link: "" } }, `All ${found.runs.length}`)),
      h("div.scroll", h("table.plain", h("tbody", found.runs.slice(0, 4).map((run) => h("tr", h("td", h("a", { href: `/runs/${run.name.split("/").map(encodeURIComponent).join("/")}`, data: { link: "" } }, h("b", run.name))), h("td", stateBadge(run.state)), h("td.wide", run.family),
        h("td.num.wide", `${count(run.parameters)} parameters`), h("td.num", `validation ${number(run.best_validation, 4)}`))))))));
  } else replace(here, h("p.soft", `No runs in ${found.folder}/ yet: the first way in makes one.`));
}
