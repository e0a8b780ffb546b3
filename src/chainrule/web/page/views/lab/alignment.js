// Alignment: a world of nine answers, where the best policy is known: the frontier of reward and KL, and how near methods come.

import { ask, query } from "../../lib/api.js";
import { debounce, exact, h, number, replace } from "../../lib/dom.js";
import { asPython, facts, halt, heading, permalink } from "../../lib/parts.js";
import { plot } from "../../lib/plot.js";

const LETTERS = "abcdefgh";

export async function render(place, { params, remember, work }) {
  place.classList.add("stack-large");
  const about = await ask("/api/alignment/about"), [least, most] = about.betas;
  const state = { seed: Number(params.get("seed") ?? 1), beta: Number(params.get("beta") ?? 0.5), steps: Number(params.get("steps") ?? 100) };
  let world = null;
  const trained = new Map(), named = (params.get("trained") ?? "").split(",").filter((method) => about.methods.includes(method));
  const frontier = plot("Reward against distance from the reference", { x: { label: "KL(π ‖ π_ref) in nats" }, y: { label: "mean reward" }, height: 360 });
  const approach = plot("Distance to the best policy π*", { x: { label: "step" }, y: { label: "total variation", log: true, low: 1e-5, high: 1 }, height: 300 });
  const numbers = h("div"), answers = h("div.grid2"), wrong = h("div"), said = h("b.mono", number(state.beta, 3)), busy = Object.fromEntries(about.methods.map((method) => [method, h("div")]));
  replace(place, heading("Alignment", "In a world of nine answers the best policy can be written down. So whether a method works is a number, not an impression.", permalink(), asPython(() => world?.python ?? "")),
    h("div.card.form.roomy",
      h("label.field", h("span", "β, the price of leaving the reference: ", said), h("input", { type: "range", min: String(Math.log10(least)), max: String(Math.log10(most)), step: "0.05", value: String(Math.log10(state.beta)), "aria-label": "β", "aria-valuetext": number(state.beta, 3), oninput: (event) => {
        state.beta = Math.max(least, Math.min(most, Number((10 ** Number(event.target.value)).toPrecision(3)))); said.textContent = number(state.beta, 3); event.target.setAttribute("aria-valuetext", said.textContent); later(); } })),
      h("label.field", "World", h("input.mono", { type: "number", min: "0", max: String(about.worlds - 1), value: String(state.seed), oninput: (event) => { state.seed = Number(event.target.value); later(); } })),
      h("label.field", "Steps of training", h("input.mono", { type: "number", min: String(about.steps[0]), max: String(about.steps[1]), step: "10", value: String(state.steps), onchange: (event) => { state.steps = Number(event.target.value); forget(); draw(); keep(); } }))),
    wrong, h("section.card", numbers),
    h("div.grid2", h("section.card.stack", frontier.root, h("p.small.soft", "No policy lies above the curve: it joins the best policies of all β. Best-of-n takes the best of n answers of the reference.")),
      h("section.card.stack", approach.root, h("div.row", { role: "group", "aria-label": "Train" }, about.methods.map((method) => h("button", { type: "button", data: { method }, onclick: () => train(method) }, `Train by ${method}`))), h("div", Object.values(busy)),
        h("p.small.soft", "DPO learns from all pairs of answers, the others from answers of their own. GRPO ends elsewhere, by design: it divides rewards by their deviation."))),
    h("section.card.stack", h("h2", "Every answer"), h("p.soft", "The reference, the best policy π* ∝ π_ref · exp(r/β), and the last one that was trained."), answers));

  const keep = () => remember(new URLSearchParams({ seed: state.seed, beta: state.beta, steps: state.steps, ...(trained.size ? { trained: [...trained.keys()] } : {}) }));
  const later = debounce(120, () => { forget(); load(); });
  const forget = () => { trained.clear(); for (const each of Object.values(busy)) halt(each); }; // they were trained for another question

  function load() {
    keep();
    return work(wrong, async ({ onjob, signal }) => {
      world = await ask(`/api/alignment?${query({ seed: state.seed, beta: state.beta })}`, { onjob, signal });
      draw();
      return [];
    }, { keep: true });
  }

  function draw() {
    if (!world) return;
    replace(numbers, facts([["reward of the reference", world.start.reward, 4, "start"], ["reward of π*", world.at.reward, 4, "reward"], ["KL of π*", world.at.kl, 4, "kl"], ["reward − β KL", world.at.reward - state.beta * world.at.kl, 4, "objective"], ["distance of the reference from π*", world.distance, 4, "distance"]]));
    frontier.draw([
      { name: "best policies", x: world.frontier.map((p) => p.kl), y: world.frontier.map((p) => p.reward), color: 0 },
      { name: "best of n", x: world.best_of_n.map((p) => p.kl), y: world.best_of_n.map((p) => p.reward), color: 7, dots: true, dashed: true, labels: world.best_of_n.map((p) => (p.n === 1 ? "the reference" : `n = ${p.n}`)) },
      { name: `π* at β = ${number(state.beta, 3)}`, x: [world.at.kl], y: [world.at.reward], color: 6, dots: true, size: 7 },
      ...[...trained.values()].map((each) => ({ name: each.method, x: each.curve.map((p) => p.kl), y: each.curve.map((p) => p.reward), color: 1 + about.methods.indexOf(each.method), dots: true, size: 2.5 })),
    ]);
    approach.draw(trained.size ? [...trained.values()].map((each) => ({ name: each.method, x: each.curve.map((p) => p.step), y: each.curve.map((p) => Math.max(p.distance, 1e-9)), color: 1 + about.methods.indexOf(each.method), dots: true, size: 2.5 }))
      : [{ name: "the reference", x: [0, state.steps], y: [world.distance, world.distance], color: 7, dashed: true }]);
    const last = [...trained.values()].at(-1);
    replace(answers, world.prompts.map((prompt, x) => h("div.scroll", h("table.plain", h("caption.small.soft", `Prompt ${LETTERS[prompt]}`), h("thead", h("tr", h("th", "answer"), h("th.num", "reward"), h("th.num", "π_ref"), h("th.num", "π*"), last && h("th.num", last.method))),
      h("tbody", world.answers.map((answer, y) => h("tr", { data: { answer: answer.join("") } }, h("td.mono", answer.map((t) => LETTERS[t]).join(" ")), exact("td.num", world.rewards[x][y], 3), exact("td.num", world.reference[x][y], 3), h("td.num.cell.best", { css: { "--weight": `${Math.round(75 * world.best[x][y])}%` }, data: { value: String(world.best[x][y]) } }, number(world.best[x][y], 3)), last && exact("td.num", last.policy[x][y], 3))))))));
  }

  function train(method) {
    const button = place.querySelector(`[data-method="${method}"]`);
    button.disabled = true;
    return work(busy[method], async ({ onjob, signal }) => {
      const found = await ask(`/api/alignment/train?${query({ method, seed: state.seed, beta: state.beta, steps: state.steps })}`, { onjob, signal });
      trained.delete(method);
      trained.set(method, found);
      keep();
      draw();
      const end = found.curve.at(-1);
      return h("p", { data: { trained: method, distance: String(end.distance) }, role: "status" }, `${method} ends ${number(end.distance, 3)} from the best policy, with reward ${number(end.reward)} and KL ${number(end.kl)}.`);
    }, { keep: true }).finally(() => { button.disabled = false; });
  }

  await load();
  for (const method of world ? named : []) await train(method);
}
