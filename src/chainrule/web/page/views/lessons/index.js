// Lessons: the path, one lesson, or a figure of one.

import { ask } from "../../lib/api.js";
import { h, replace } from "../../lib/dom.js";
import { heading } from "../../lib/parts.js";
import { renderFigure } from "./figure.js";
import { renderLesson } from "./lesson.js";
import { doneIn, forget } from "./progress.js";

const PARTS = { numbers: "Numbers", networks: "Networks", sequences: "Sequences", transformers: "Transformers", purpose: "From a model to an assistant" };

export function render(place, visit) {
  const { below } = visit;
  place.classList.add("stack-large");
  if (below === "") return renderPath(place);
  const [first, second] = below.split("/");
  if (first === "figures" && second) return renderFigure(place, second, visit);
  return renderLesson(place, decodeURIComponent(below), visit);
}

async function renderPath(place) {
  const lessons = await ask("/api/lessons");
  const finished = lessons.filter((each) => doneIn(each.name).size >= each.exercises).length;
  const next = lessons.find((each) => doneIn(each.name).size < each.exercises) ?? lessons[0];
  const parts = [...new Set(lessons.map((each) => each.part))];
  replace(place,
    heading("Lessons", "A path from one number and its slope to a model that follows preferences. Each lesson is a page with something to move, and a question to answer."),
    h("div.card.stack", h("div.row.between", h("div", h("b", finished ? `${finished} of ${lessons.length} lessons done` : `${lessons.length} lessons, ten minutes each`), h("div.small.soft", "Kept in this browser only.")),
      h("div.row", finished > 0 && h("button.quiet", { type: "button", onclick: () => { forget(); renderPath(place); } }, "Start over"), h("a.button.main", { href: `/lessons/${next.name}`, data: { link: "" } }, finished ? `Continue: ${next.title}` : "Begin with one number"))),
    h("progress", { max: String(lessons.length), value: String(finished), "aria-label": "Lessons done" })),
    parts.map((part) => h("section.stack", h("h2", PARTS[part] ?? part), h("ol.path", { start: String(lessons.findIndex((each) => each.part === part) + 1) }, lessons.filter((each) => each.part === part).map((each) => {
      const done = doneIn(each.name).size, whole = done >= each.exercises;
      return h("li", h("a.op", { href: `/lessons/${each.name}`, data: { link: "", lesson: each.name, done: String(done) } }, h("span.row.between", h("b", `${lessons.indexOf(each) + 1}. ${each.title}`), h("span", { class: `badge${whole ? " good" : ""}` }, whole ? "✓ done" : each.exercises ? `${done} of ${each.exercises}` : "")), h("span", each.about)));
    })))));
}
