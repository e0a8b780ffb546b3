// The list of ops, and one op: equations, the code that computes them, and numbers to edit and check.

import { ask, query } from "../lib/api.js";
import { arrayTable } from "../lib/arrays.js";
import { h, number, prose, replace } from "../lib/dom.js";
import { blocks, equation } from "../lib/math.js";
import { asPython, heading, permalink } from "../lib/parts.js";

export async function renderList(place, { params, remember }, tabs) {
  const ops = await ask("/api/ops");
  const list = h("div.stack-large");
  const field = h("input", { type: "search", placeholder: "Search: softmax, norm, loss …", "aria-label": "Search the ops", value: params.get("q") ?? "", oninput: draw });
  function draw() {
    const wanted = field.value.trim().toLowerCase();
    remember(new URLSearchParams(wanted ? { q: wanted } : {}));
    const found = ops.filter((op) => `${op.name} ${op.about} ${op.family}`.toLowerCase().includes(wanted));
    const families = [...new Set(ops.map((op) => op.family))].sort((a, b) => ["Networks", "Losses", "Arrays"].indexOf(a) - ["Networks", "Losses", "Arrays"].indexOf(b));
    replace(list, found.length ? families.map((family) => {
      const members = found.filter((op) => op.family === family);
      return members.length ? h("section", h("h2", family, " ", h("span.badge", members.length)), h("div.oplist", members.map((op) =>
        h("a.op", { href: `/calculus/ops/${op.name}`, data: { link: "" } }, h("b.mono", op.name), h("span", prose(op.about)))))) : null;
    }) : h("p.soft", `No op is called like “${field.value}”.`));
  }
  draw();
  replace(place, heading("Every op", `${ops.length} operations. Each has a derivation, the code that computes it, and a check on numbers that you choose.`), tabs,
    h("div.search", field), list);
  place.classList.add("stack-large");
}

export async function renderOp(place, name, { params, remember, work }, tabs) {
  const op = await ask(`/api/ops/${encodeURIComponent(name)}`);
  document.title = `${name} · Chainrule Studio`;
  const edits = new Map([...params].filter(([key]) => key !== "example"));
  let example = Number(params.get("example") ?? 0);
  let program = "";
  const live = h("div.stack");
  const [about, ...more] = op.about.split("\n\n");
  const whole = h("details.card.derivation", h("summary", h("h2", "The whole derivation")), h("div.stack", blocks(op.derivation)));
  /** The place of an equation in the derivation; an op may use one of another page, which has none here. */
  const derived = (tag) => {
    const found = whole.querySelector(`[data-tag="${CSS.escape(tag)}"]`);
    return found && (() => { whole.open = true; found.scrollIntoView({ block: "center" }); });
  };
  replace(place,
    heading(h("span.mono", name), prose(about), permalink(), asPython(() => program)),
    h("div.row", tabs, h("span.badge", op.family)),
    more.length ? h("p.soft", prose(more.join(" "))) : null,
    h("section.card.stack", { id: "live" }, live),
    h("div.grid2",
      h("section.card.stack", h("h2", "The equations"), h("p.soft.small", "Point at one: the lines that compute it light up. Its number leads to its derivation."),
        h("div.equations", op.equations.length ? op.equations.map((block) => equation(block, { tabindex: "0" }, derived)) : h("pre.formula", op.formula))),
      h("section.card.stack", h("h2", "The code"), op.code.map(codeOf))),
    whole);
  place.classList.add("stack-large");
  link(place);

  const load = () => {
    const search = new URLSearchParams(edits);
    if (example) search.set("example", example);
    remember(search);
    return work(live, async ({ onjob, signal }) => {
      const found = await ask(`/api/ops/${encodeURIComponent(name)}/check?${query({ ...Object.fromEntries(edits), example })}`, { onjob, signal });
      program = found.python;
      return drawLive(found);
    }, { keep: live.childElementCount > 0 });
  };

  function edit(key, text) {
    const focused = document.activeElement?.getAttribute("aria-label");
    edits.set(key, text);
    load().then(() => live.querySelector(`[aria-label="${CSS.escape(focused ?? "")}"]`)?.focus());
  }

  function drawLive(found) {
    const choose = h("select", { "aria-label": "Example", onchange: (event) => { example = Number(event.target.value); edits.clear(); load(); } },
      Array.from({ length: op.examples }, (_, i) => h("option", { value: String(i), selected: i === example }, `Example ${i + 1}`)));
    const right = found.error <= 1e-6;
    const verdict = h("span", { class: `badge ${right ? "good" : "bad"}`, data: { error: String(found.error) } },
      right ? "✓ backward agrees with finite differences" : "backward and finite differences differ", ` · largest error ${number(found.error, 2)}`);
    const shape = (shape) => h("span.faint.small", ` (${shape.join(", ")}${shape.length === 1 ? "," : ""})`);
    return [
      h("div.row.between", h("h2", "On these numbers"), h("div.row", op.examples > 1 && choose, edits.size > 0 && h("button.quiet", { onclick: () => { edits.clear(); load(); } }, "Undo edits"))),
      h("p.soft", "Change any number in a field. ", h("span.forward", "Blue"), " is the forward pass, ", h("span.backward", "orange"), " the gradients."),
      verdict,
      found.constants.length ? h("div.row", found.constants.map((constant) => constant.array ? h("div", h("h3", h("code", constant.name)), arrayTable(constant.name, constant.array, shapeOf(constant.array), {
        kind: "int", onedit: (at, text) => edit(`${constant.name}.${at}`, text) }))
        : h("label.field", constant.name, h("input.mono", { value: constant.value, disabled: !constant.editable, size: "10", "aria-label": constant.name, onchange: (event) => edit(constant.name, event.target.value) })))) : null,
      h("div.passes", h("div.col", found.inputs.map((input) => h("div.io", h("h3", h("code", input.name), shape(input.shape)), arrayTable(input.name, input.value, input.shape, {
        kind: input.kind, onedit: (at, text) => edit(`${input.name}.${at}`, text) })))),
      h("div.arrow", { "aria-hidden": "true" }, h("code", name), h("span.forward", "⟶"), h("span.backward", "⟵")),
      h("div.col", found.outputs.map((output) => h("div.io",
        h("h3", h("code", output.name), shape(output.shape)), arrayTable(output.name, output.value, output.shape),
        h("h3", h("code", output.seed_name), h("span.faint.small", " the gradient that arrives")), arrayTable(output.seed_name, output.seed, output.shape, {
          tone: "backward", onedit: (at, text) => edit(`${output.seed_name}.${at}`, text) }))))),
      h("h3", "Gradients of the inputs"),
      h("div.grads", found.inputs.filter((input) => input.grad !== null).map((input) => h("div.pair",
        h("div.io", h("h3", h("code", `d${input.name}`), h("span.faint.small", " by backward")), arrayTable(`d${input.name}`, input.grad, input.shape, { tone: "backward" })),
        h("div.io", h("h3", h("code", `d${input.name}`), h("span.faint.small", " by finite differences")), arrayTable(`n${input.name}`, input.difference, input.shape, { tone: "plain" }))))),
    ];
  }
  await load();
}

function shapeOf(value) {
  return Array.isArray(value) ? [value.length, ...shapeOf(value[0])] : [];
}

function codeOf(part) {
  return h("div", h("div.row.between.file", h("b.mono", part.name), h("span.faint.small.mono", `${part.file}:${part.first}`)),
    h("pre.code.numbered", { tabindex: "0", "aria-label": `Source of ${part.name}` }, part.lines.map((line) => {
      const tagged = line.tags.length > 0;
      return h("span", { class: `line${tagged ? " tagged" : ""}`, data: tagged ? { tags: line.tags.join(" ") } : {} },
        h("span.no", { "aria-hidden": "true" }, line.no), line.tags.map((tag) => h("span.tag", `[${tag}]`)), line.text, "\n");
    })));
}

/** Equations and lines that carry the same tag light up together. */
function link(place) {
  const mark = (tags, on) => {
    for (const each of place.querySelectorAll(".equation[data-tag]")) each.classList.toggle("lit", on && tags.includes(each.dataset.tag));
    for (const each of place.querySelectorAll(".line.tagged")) each.classList.toggle("lit", on && each.dataset.tags.split(" ").some((tag) => tags.includes(tag)));
  };
  for (const [types, on] of [[["pointerover", "focusin"], true], [["pointerout", "focusout"], false]]) {
    for (const type of types) place.addEventListener(type, (event) => {
      const found = event.target.closest?.(".equation[data-tag], .line.tagged");
      if (found) mark((found.dataset.tag ?? found.dataset.tags).split(" "), on);
    });
  }
}
