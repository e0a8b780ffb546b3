// Runs: the list, and several side by side; `run.js` shows one, `train.js` starts one.

import { go } from "../app.js";
import { ask } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { count, exact, h, number, replace } from "../lib/dom.js";
import { asPython, empty, heading, permalink, problem } from "../lib/parts.js";
import { renderRun } from "./run.js";
import { renderForm } from "./train.js";

const EVERY = 3000; // milliseconds between looks at the list

export function render(place, visit) {
  const { below } = visit;
  place.classList.add("stack-large");
  if (below === "") return renderList(place, visit);
  if (below === "new") return renderForm(place, visit);
  if (below === "compare") return renderCompare(place, visit);
  return renderRun(place, below.split("/").map(decodeURIComponent).join("/"), visit);
}

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
  return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

const TONES = { running: "forward", finished: "good", failed: "bad", damaged: "bad", interrupted: "backward", starting: "forward" };
export const stateBadge = (state) => h("span", { class: `badge ${TONES[state] ?? ""}`, data: { state } }, state === "running" ? "● running" : state);

async function renderList(place, { signal }) {
  const list = h("div");
  const chosen = new Set();
  const compare = h("button", { disabled: true, onclick: () => go(`/runs/compare?${new URLSearchParams([...chosen].map((name) => ["run", name]))}`) }, "Compare");
  let timer = 0, drawn = "";
  replace(place, heading("Runs", "Every training leaves a run: its curves, samples, settings and checkpoints.", compare, h("a.button.main", { href: "/runs/new", data: { link: "" } }, "New run")), list);
  const mark = () => {
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size}`;
  };
  function draw(found) {
    const key = JSON.stringify(found);
    if (key === drawn) return;
    drawn = key;
    if (!found.runs.length && !found.waiting.length) {
      replace(list, empty("No runs yet", `Nothing has been trained in ${found.folder}/. A first model takes two minutes, on text that every Python has.`, h("a.button.main", { href: "/runs/new", data: { link: "" } }, "Train something")));
      return;
    }
    replace(list, h("div.card.scroll", h("table.plain.runs", h("thead", h("tr", h("th", h("span.hidden", "compare")), h("th", "run"), h("th", "state"), h("th.wide", "family"), h("th.num.wide", "parameters"), h("th.num", "steps"), h("th.num", "validation"), h("th.num.wide", "time"))),
      h("tbody", found.waiting.map((name) => h("tr", h("td"), h("td", link(name)), h("td", stateBadge("starting")), ...Array.from({ length: 5 }, (_, i) => h(`td.num${[0, 1, 4].includes(i) ? ".wide" : ""}`, "–")))),
        found.runs.map((run) => h("tr", { data: { run: run.name } },
          h("td", h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, checked: chosen.has(run.name), onchange: (event) => { event.target.checked ? chosen.add(run.name) : chosen.delete(run.name); mark(); } })),
          h("td", link(run.name), run.problem && h("div.small.bad.wide", run.problem)), h("td.states", h("div", stateBadge(run.state), run.findings ? h("a.badge.bad", { href: `${address(run.name)}#doctor`, data: { link: "", findings: String(run.findings) }, title: "What the doctor says" }, `! ${count(run.findings)}`, h("span.wide", run.findings === 1 ? "problem" : "problems")) : null)), h("td.wide", run.family), h("td.num.wide", count(run.parameters)), h("td.num", count(run.steps)),
          exact("td.num", run.best_validation, 5), h("td.num.wide", clock(run.time))))))));
  }
  const address = (name) => `/runs/${name.split("/").map(encodeURIComponent).join("/")}`;
  const link = (name) => h("a", { href: address(name), data: { link: "" } }, h("b", name));
  async function look() {
    try {
      draw(await ask("/api/runs"));
    } catch (error) {
      drawn = "";
      replace(list, problem(error));
    }
    if (!signal.aborted) timer = setTimeout(look, EVERY);
  }
  signal.addEventListener("abort", () => clearTimeout(timer));
  await look();
}

async function renderCompare(place, { params, work }) {
  const names = params.getAll("run");
  const body = h("div.stack-large");
  let program = "";
  replace(place, heading("Compare", names.join(" · "), permalink(), asPython(() => program), h("a.button", { href: "/runs", data: { link: "" } }, "All runs")), body);
  await work(body, async ({ onjob, signal }) => {
    const found = await ask(`/api/runs-compare?${new URLSearchParams(names.map((name) => ["run", name]))}`, { onjob, signal });
    program = found.python;
    const loss = chart("Training loss", { height: 300 }), validation = chart("Validation loss", { height: 300 });
    const series = (key, dots) => found.runs.map((run, i) => ({ name: run.name, steps: run[key].map(([step]) => step), values: run[key].map(([, y]) => y), color: i % 8, dots }));
    queueMicrotask(() => { loss.draw(series("loss")); validation.draw(series("validation", true)); });
    const rows = Object.entries(found.settings);
    const results = [["best validation", (run) => number(run.best_validation, 5), "best_validation"], ["bits per byte", (run) => number(run.bits_per_byte, 5), "bits_per_byte"], ["steps", (run) => count(run.steps), "steps"], ["parameters", (run) => count(run.parameters), "parameters"], ["time", (run) => clock(run.time), "time"]];
    const best = Math.min(...found.runs.map((run) => run.best_validation ?? Infinity));
    return [
      h("div.grid2", h("div.card", validation.root), h("div.card", loss.root)),
      h("div.card.stack", h("h2", "Results"), h("div.scroll", h("table.plain", h("thead", h("tr", h("th", ""), found.runs.map((run, i) => h("th.num", h("i.dot", { css: { background: `var(--c${i % 8})` } }), run.name)))),
        h("tbody", results.map(([name, show, key]) => h("tr", { data: { result: key } }, h("td", name), found.runs.map((run) => h("td.num", { data: { value: String(run[key]) }, class: `num${key === "best_validation" && run[key] === best ? " good" : ""}` }, show(run))))))))),
      h("div.card.stack", h("h2", "Settings that differ"), rows.length ? h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "setting"), found.runs.map((run) => h("th.num", run.name)))),
        h("tbody", rows.map(([name, values]) => h("tr", { data: { setting: name } }, h("td", h("code", name)), values.map((value) => h("td.num", value === null ? "–" : String(value)))))))) : h("p.soft", "None: the runs differ in nothing but chance.")),
    ];
  });
}
