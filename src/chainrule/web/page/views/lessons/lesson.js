// One lesson: text, live views of the Studio inside it, exercises that the server checks, derivations to read on.

import { moduleOf, view } from "../../app.js";
import { ask, query } from "../../lib/api.js";
import { h, replace } from "../../lib/dom.js";
import { blocks, parts } from "../../lib/math.js";
import { heading, permalink, problem } from "../../lib/parts.js";
import { doneIn, note } from "./progress.js";

export async function renderLesson(place, name, { signal, work }) {
  const lesson = await ask(`/api/lessons/${encodeURIComponent(name)}`);
  if (signal.aborted) return undefined;
  const widgets = [], leaves = [];
  const state = h("div");
  const body = lesson.blocks.map((block) => {
    if (block.kind === "exercise") return exercise(lesson, block, drawState);
    if (block.kind === "heading") return h("h2", parts(block.parts));
    if (block.kind !== "widget") return blocks([block]);
    const inside = h("div.embedded.stack-large");
    widgets.push([block, inside]);
    return h("section.widget", { "aria-label": "Live" }, inside, h("p.small.soft.row.between", h("span", parts(block.caption)), h("a", { href: block.path, data: { link: "" } }, "Open as a page →")));
  });
  const step = (each, words) => (each ? h("a.button", { href: `/lessons/${each.name}`, data: { link: "" } }, words(each.title)) : h("span"));
  replace(place, h("div.lessonhead", h("a.small", { href: "/lessons", data: { link: "" } }, "← All lessons"), heading(lesson.title, lesson.about, permalink()), state),
    h("article.lesson.stack", body),
    lesson.derivations.length ? h("section.lesson.stack", h("h2", "The mathematics, in full"), lesson.derivations.map((each) => derivation(each, work))) : null,
    h("nav.row.between.steps", { "aria-label": "Lessons" }, step(lesson.before, (title) => `← ${title}`), lesson.after ? h("a.button.main", { href: `/lessons/${lesson.after.name}`, data: { link: "" } }, `${lesson.after.title} →`) : h("a.button.main", { href: "/lessons", data: { link: "" } }, "All lessons")));
  document.title = `${lesson.title} · Chainrule Studio`;
  function drawState() {
    const done = doneIn(name).size;
    replace(state, h("div.row", h("span.badge", `Lesson ${lesson.number} of ${lesson.of}`), lesson.exercises ? h("span", { class: `badge${done >= lesson.exercises ? " good" : ""}` }, done >= lesson.exercises ? "✓ done" : `${done} of ${lesson.exercises} exercises`) : null));
  }
  drawState();
  const visit = { signal, work, remember: () => {} }; // a view inside a lesson leaves the lesson's address alone
  for (const [block, inside] of widgets) if (!signal.aborted) leaves.push(await embed(inside, block.path, visit));
  if (signal.aborted) return () => leaves.forEach((leave) => leave?.());
  document.title = `${lesson.title} · Chainrule Studio`;
  return () => leaves.forEach((leave) => leave?.());
}

/** A view of the Studio inside this page; its own heading is hidden. */
async function embed(place, path, visit) {
  const [pathname, search] = path.split("?"), found = view(pathname);
  try {
    const module = await moduleOf(found);
    return await module.render(place, { ...visit, below: pathname.slice(found.path.length).replace(/^\//, ""), params: new URLSearchParams(search) });
  } catch (error) {
    replace(place, problem(error));
    return null;
  }
}

function exercise(lesson, block, onright) {
  const said = h("div", { role: "status", "aria-live": "polite" });
  const field = h("input.mono", { "aria-label": "Your answer", autocomplete: "off", spellcheck: "false", size: "24" });
  const card = h("form.card.stack.exercise", { data: { exercise: String(block.number) }, onsubmit: (event) => { event.preventDefault(); check(); } },
    h("h2", "Try it"), h("p", parts(block.ask)), h("div.row", field, h("button.main", { type: "submit" }, "Check")), said);
  if (doneIn(lesson.name).has(block.number)) card.classList.add("done");
  async function check() {
    if (!field.value.trim()) { field.focus(); return; }
    try {
      const found = await ask(`/api/lessons/${encodeURIComponent(lesson.name)}/check?${query({ reply: field.value, exercise: block.number })}`);
      replace(said, h("p", { class: found.right ? "good" : "bad", data: { right: String(found.right) } }, h("b", `${found.right ? "✓ " : ""}${found.said} `), parts(found.more)));
      card.classList.toggle("done", found.right || doneIn(lesson.name).has(block.number));
      if (found.right) { note(lesson.name, block.number); onright(); }
    } catch (error) {
      replace(said, problem(error));
    }
  }
  return card;
}

function derivation(name, work) {
  const inside = h("div.stack");
  let asked = false;
  return h("details.card.derivation", { ontoggle: (event) => { if (event.target.open && !asked) { asked = true; work(inside, async ({ onjob, signal }) => blocks(await ask(`/api/derivations/${encodeURIComponent(name)}`, { onjob, signal }))); } } }, h("summary", h("h3", name.replaceAll("_", " "))), inside);
}
