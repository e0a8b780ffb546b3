// One run: curves while it trains, samples over time, the doctor's findings, its settings.

import { ask, follow } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { count, h, number, prose, replace } from "../lib/dom.js";
import { findingList } from "../lib/findings.js";
import { asPython, heading, permalink, problem, toast } from "../lib/parts.js";
import { replayCard } from "./replay.js";
import { clock, stateBadge } from "./runs.js";

/** The block of a parameter, or its layer: h.0.attn.c_attn.weight is of h.0. */
const blockOf = (name) => name.match(/\w+\.\d+(?=\.)/)?.[0] ?? name.replace(/\.weight$/, "");
const address = (name) => name.split("/").map(encodeURIComponent).join("/");

export async function renderRun(place, name, visit) {
  const { signal, work } = visit;
  const whole = await ask(`/api/runs/${address(name)}`);
  if (signal.aborted) return undefined;
  document.title = `${name} · Chainrule Studio`;
  const state = h("span.row"), actions = h("span.row"), facts = h("div.facts"), samples = h("div"), findings = h("div"), output = h("div"), wrong = h("div"), settings = h("div");
  const loss = chart("Loss", { height: 330 }), lr = chart("Learning rate", { height: 190 }), norm = chart("Gradient norm", { height: 190, log: true }), ratio = chart("Update ratio of each matrix", { height: 190, log: true }), speed = chart("Speed", { height: 190 });
  let python = whole.python, seen = null, picked = null, was = null, asked = false, shown = location.hash !== "#doctor";
  const examined = h("div");
  replace(place,
    heading(h("span", name), null, actions, permalink(), asPython(() => python)),
    h("div.row", state, whole.family && h("span.badge", whole.family), h("a.chip", { href: "/runs", data: { link: "" } }, "All runs")),
    wrong, facts, output,
    h("section.card", loss.root),
    h("div.grid2", h("section.card", norm.root), h("section.card", ratio.root, h("p.small.soft", "How much of a matrix a step changes: ‖update‖ / ‖weights‖. About 0.001 is usual; far more forgets, far less learns nothing.")), h("section.card", lr.root), h("section.card", speed.root)),
    h("div.grid2", h("section.card.stack", h("h2", "What it writes"), samples),
      h("section.card.stack", { id: "doctor" }, h("div.row.between", h("h2", "What the doctor says"), h("button.live", { onclick: examine }, "Examine the newest checkpoint")), findings, examined)),
    whole.parameters ? replayCard(name, visit) : null,
    h("details.card.derivation", h("summary", h("h2", "Settings")), settings));
  drawSettings(whole);

  function drawSettings(found) {
    const rows = Object.entries(found.settings);
    replace(settings, rows.length ? h("table.plain", h("tbody", rows.map(([key, value]) => h("tr", h("td", h("code", key)), h("td.value", String(value)))))) : h("p.soft", "Not written yet."));
  }

  function examine() {
    work(examined, async ({ onjob, signal }) => {
      const found = await ask(`/api/runs/${address(name)}/doctor`, { onjob, signal });
      return [h("p.small.soft", found.title), findingList(found.findings)];
    });
  }

  /** The form of a new run, filled in with the settings of this one. */
  function again() {
    const { settings } = whole, kept = ["n_layer", "n_head", "n_embd", "n_hidden", "block_size", "batch_size", "lr", "weight_decay", "seed"].filter((key) => typeof settings[key] === "number");
    const first = [...seen.findings].reverse().find((each) => each.setting && each.level === "problem")?.setting;
    return new URLSearchParams([["family", whole.family], ...(first ? [["change", first]] : []), ...(typeof settings.data === "string" ? [["data", settings.data]] : []), ...(settings.max_steps ? [["steps", settings.max_steps]] : []), ...kept.map((key) => [key, settings[key]])]);
  }

  const retry = () => h("a.button", { href: `/runs/new?${again()}`, data: { link: "" } }, "Change its settings and try again");

  async function act(path, said) {
    try {
      await ask(`/api/${path}/${address(name)}`, { body: {} });
      replace(wrong);
      toast(said);
    } catch (error) {
      replace(wrong, problem(error));
    }
  }

  function draw(now) {
    const alive = now.running || now.process?.alive;
    const failed = Boolean(now.process?.problem), gone = !now.there && !alive && !failed;
    const label = alive ? (now.step ? "running" : "starting") : gone ? "deleted" : failed ? "failed" : whole.state === "running" || whole.state === "starting" ? "ended" : whole.state;
    replace(state, stateBadge(label));
    replace(actions, alive ? (now.process?.alive ? h("button", { onclick: () => act("stop", "Stopping: it saves itself first") }, "Stop") : null)
      : now.there && !["empty", "finished"].includes(whole.state) ? h("button", { onclick: () => act("resume", "Resuming from the newest checkpoint") }, "Resume") : null);
    if (whole.reads && !gone) actions.append(h("a.button", { href: `/playground?run=${encodeURIComponent(name)}`, data: { link: "" } }, "Playground"));
    if (whole.inside && !gone) actions.append(h("a.button.main", { href: `/microscope?run=${encodeURIComponent(name)}`, data: { link: "" } }, "Look inside"));
    const { curves } = now;
    const last = (key) => curves[key][1].at(-1);
    const fact = (title, value, id, tone = "") => h("div.fact", h("span.small.soft", title), h("b", { class: tone, data: { fact: id, value: String(value.exact) } }, value.text));
    replace(facts,
      h("div.fact", h("span.small.soft", "step"), h("b", { data: { fact: "step", value: String(now.step) } }, count(now.step), now.total && (alive || !whole.settings.budget) && h("span.small.soft", { data: { total: String(now.total) } }, ` of ${whole.settings.budget ? "about " : ""}${count(now.total)}`))),
      fact("training loss", { exact: last("loss"), text: number(last("loss"), 4) }, "loss", "forward"),
      fact("validation loss", { exact: last("validation"), text: number(last("validation"), 4) }, "validation", "backward"),
      fact("parameters", { exact: whole.parameters, text: count(whole.parameters) }, "parameters"),
      fact("training time", { exact: now.seconds, text: clock(now.seconds) }, "seconds"),
      alive && now.left !== null ? fact("time left", { exact: now.left, text: clock(now.left) }, "left") : null);
    const line = (key, color, name, extra = {}) => ({ name, steps: curves[key][0], values: curves[key][1], color, ...extra });
    loss.draw([line("loss", 0, "single steps", { faint: true }), line("smooth", 0, "training"), line("validation", 1, "validation", { dots: true })]);
    lr.draw([line("lr", 2, "learning rate")]);
    norm.draw([line("norm", 3, "gradient norm")]);
    speed.draw([line("speed", 5, `${now.unit}/s`)]);
    const matrices = Object.entries(now.ratios).filter(([key]) => key.endsWith("weight")), blocks = [...new Set(matrices.map(([key]) => blockOf(key)))];
    ratio.draw(matrices.map(([key, [steps, values]]) => ({ name: key, steps, values, group: blockOf(key), color: blocks.indexOf(blockOf(key)) % 8 })));
    drawSamples(now.samples);
    const why = alive || gone ? "" : now.process?.problem || (whole.state === "failed" || whole.state === "damaged" ? whole.problem : "");
    const bad = !alive && !why && now.there && now.findings.some((each) => each.level === "problem");
    replace(findings, now.findings.length ? [findingList([...now.findings].reverse()), bad && h("p", retry())] : h("p.soft", alive ? "Nothing to remark so far." : "It remarked nothing while this run trained."));
    replace(output, gone ? problem(new Error(`run ${name}: is no longer in the directory of the Studio (it was deleted or moved: see all runs)`))
      : why ? h("div.stack", { role: "alert" }, h("div.error", h("b", "Why it ended: "), prose(why)), now.there && h("div.row", retry(), now.findings.length ? h("a.chip", { href: "#doctor" }, "What the doctor says") : null))
        : !now.there && now.process?.lines.length ? h("pre.code", now.process.lines.slice(-12).join("\n")) : null);
    const told = Object.keys(whole.settings).length > 0;
    if ((was !== null && was !== alive) || (now.there && !told && !asked)) {
      asked = now.there; // its settings are there with its first record
      ask(`/api/runs/${address(name)}`).then((found) => { Object.assign(whole, found); python = found.python; drawSettings(found); if (seen) draw(seen); }, () => {});
    }
    was = alive;
    if (!shown) document.getElementById("doctor")?.scrollIntoView();
    shown = true;
  }

  function drawSamples(list) {
    if (!list.length) return replace(samples, h("p.soft", "No samples yet: a run with sample_every writes one now and then."));
    const at = picked === null ? list.length - 1 : Math.min(picked, list.length - 1);
    const slider = h("input", { type: "range", min: "0", max: String(list.length - 1), value: String(at), "aria-label": "Sample", oninput: (event) => { picked = Number(event.target.value); if (picked === list.length - 1) picked = null; drawSamples(list); samples.querySelector("input")?.focus(); } });
    return replace(samples, h("div.row", list.length > 1 && slider, h("span.badge", `after step ${count(list[at].step)}`)), h("blockquote.sample", list[at].text));
  }

  return follow(`/api/runs/${address(name)}/events`, (now) => { seen = now; draw(seen); });
}
