// Diagnostics: histograms of activations and gradients, saturation, dead units and update ratios of a network or a checkpoint.

import { ask, query } from "../../lib/api.js";
import { debounce, exact, h, number, refill, replace, s } from "../../lib/dom.js";
import { findingList } from "../../lib/findings.js";
import { asPython, facts, heading, permalink } from "../../lib/parts.js";
import { plot } from "../../lib/plot.js";

const LOW = 1e-4, HIGH = 1e-2; // where the ratio of an update to its weights usually lies

export async function render(place, { params, remember, work }) {
  place.classList.add("stack-large");
  const about = await ask("/api/diagnostics/about");
  const known = about.runs.some((each) => each.name === params.get("run"));
  const state = { run: known ? params.get("run") : "", depth: Number(params.get("depth") ?? 6), width: Number(params.get("width") ?? 128), activation: params.get("activation") ?? "tanh", draw: params.get("draw") ?? "no gain", norm: params.get("norm") ?? "none", lr: Number(params.get("lr") ?? 0.1) };
  let found = null;
  const form = h("div.stack"), result = h("div.stack-large");
  const missing = params.has("run") && params.get("run") && !known ? h("div.error", { role: "alert" }, `There is no run “${params.get("run")}” with a checkpoint; here is a new network.`) : null;
  replace(place, heading("Diagnostics", "Why a network may fail before its first step: numbers that grow or vanish from layer to layer, units that no example moves, updates too large for their weights.", permalink(), asPython(() => found?.python ?? "")),
    missing, h("div.card", form), result);

  function load() {
    const given = state.run ? { run: state.run } : { depth: state.depth, width: state.width, activation: state.activation, draw: state.draw, norm: state.norm, lr: state.lr };
    remember(new URLSearchParams(given));
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/diagnostics/${state.run ? "run" : "network"}?${query(given)}`, { onjob, signal });
      return drawReport(found);
    }, { keep: result.childElementCount > 0 });
  }
  const later = debounce(200, load);

  function drawForm() {
    const choose = (name, label, options) => h("label.field", label, h("select", { onchange: (event) => { state[name] = event.target.value; drawForm(); load(); } }, options.map(([value, text]) => h("option", { value, selected: value === state[name] }, text))));
    const slide = (name, label, [low, high]) => { const said = h("b.mono", state[name]); return h("label.field", h("span", `${label}: `, said), h("input", { type: "range", min: String(low), max: String(high), value: String(state[name]), "aria-label": label, oninput: (event) => { state[name] = Number(event.target.value); said.textContent = state[name]; later(); } })); };
    refill(form, h("div.form.roomy", choose("run", "Look at", [["", "a new network"], ...about.runs.map((each) => [each.name, `the newest checkpoint of ${each.name}`])]),
      !state.run && [choose("draw", "First weights", about.draws.map((each) => [each.name, each.about])), choose("activation", "Activation", about.activations.map((name) => [name, name])), choose("norm", "Normalization", about.norms.map((name) => [name, name])),
        slide("depth", "Hidden layers", about.depths), slide("width", "Units of a layer", about.widths), h("label.field", "Learning rate", h("input.mono", { value: String(state.lr), inputmode: "decimal", oninput: (event) => { const value = Number(event.target.value); if (value > 0) { state.lr = value; later(); } } }))]));
  }

  drawForm();
  await load();
}

function drawReport(found) {
  const activations = found.layers.filter((layer) => layer.op !== "add"), stream = found.layers.filter((layer) => layer.op === "add");
  const matrices = found.parameters.filter((each) => each.shape.length > 1);
  const spread = plot("Spread from layer to layer", { x: { label: "layer" }, y: { label: "standard deviation", log: true }, height: 280 });
  const shown = (activations.length ? activations : stream);
  spread.draw([{ name: "activations", x: shown.map((_, i) => i + 1), y: shown.map((layer) => layer.value.std), color: 0, dots: true },
    ...(shown.every((layer) => layer.grad) ? [{ name: "their gradients", x: shown.map((_, i) => i + 1), y: shown.map((layer) => layer.grad.std), color: 1, dots: true }] : [])]);
  return [
    h("section.card.stack", h("h2", found.title), facts([["loss", found.loss, 4, "loss"], found.expected_loss !== null && ["a blind guess", found.expected_loss, 4, "expected"], ["layers", found.layers.length, 4, "layers"], ["dead units", found.layers.reduce((sum, layer) => sum + layer.dead.length, 0), 6, "dead"]].filter(Boolean)),
      found.findings.length ? findingList(found.findings) : null),
    h("section.card.stack", h("h2", "Layer by layer"), h("p.soft", h("span.forward", "Blue"), ": what each layer puts out. ", h("span.backward", "Orange"), ": the gradient that comes back to it. Flat: entries that let less than a fiftieth of the gradient through."),
      h("div.layers", shown.map((layer) => h("div.layercard", { data: { layer: layer.name } }, h("div.row.between", h("b.mono.small", layer.name), layer.flat === null ? null : h("span", { class: `badge ${layer.flat > 0.5 ? "bad" : layer.flat > 0.2 ? "backward" : "good"}`, data: { flat: String(layer.flat) } }, `${number(100 * layer.flat, 3)} % flat`)),
        h("div.pairs", histogram(layer.value, 0, `Values of ${layer.name}`), layer.grad ? histogram(layer.grad, 1, `Gradients of ${layer.name}`) : null),
        layer.dead.length ? h("div.small.bad", `${layer.dead.length} of ${layer.units} units are dead`) : null)))),
    h("div.grid2", h("section.card.stack", spread.root), h("section.card.stack", h("h2", "Updates beside weights"), h("p.soft", `Length of the next update over the length of the matrix. Around 10⁻³ training goes well; marked: ${number(LOW)} to ${number(HIGH)}.`), ratios(matrices))),
    h("section.card.stack", h("h2", "All numbers"), h("div.scroll", { tabindex: "0", role: "group", "aria-label": "All numbers" }, h("table.plain", h("thead", h("tr", h("th", "layer"), h("th.num", "mean"), h("th.num", "std"), h("th.num", "gradient std"), h("th.num", "flat"), h("th.num", "dead"))),
      h("tbody", found.layers.map((layer) => h("tr", { data: { numbers: layer.name } }, h("td.mono.small", layer.name), exact("td.num", layer.value.mean, 3), h("td.num", { data: { std: String(layer.value.std) } }, number(layer.value.std, 4)), h("td.num", { data: { grad: String(layer.grad?.std ?? "") } }, layer.grad ? number(layer.grad.std, 3) : "–"), h("td.num", layer.flat === null ? "–" : `${number(100 * layer.flat, 3)} %`), h("td.num", layer.flat === null ? "–" : `${layer.dead.length} of ${layer.units}`))))))),
  ];
}

/** Counts between edges, as an SVG of fixed size; the height is the square root, so that tails are seen. */
function histogram(found, color, label) {
  const { counts, edges } = found.histogram, most = Math.max(...counts, 1), wide = 220, tall = 74;
  return h("figure.small-figure", s("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": `${label}: mean ${number(found.mean, 3)}, standard deviation ${number(found.std, 3)}` },
    counts.map((c, i) => s("rect", { x: (i * wide) / counts.length, y: tall - tall * Math.sqrt(c / most), width: wide / counts.length + 0.2, height: tall * Math.sqrt(c / most), css: { fill: `var(--c${color})` } }))),
  h("figcaption.mono", h("span", number(edges[0], 2)), h("span", `± ${number(found.std, 2)}`), h("span", number(edges.at(-1), 2))));
}

function ratios(matrices) {
  const low = -6, high = 1, at = (x) => `${Math.max(0, Math.min(100, ((Math.log10(x) - low) / (high - low)) * 100))}%`;
  const some = matrices.filter((each) => each.update_ratio !== null);
  if (!some.length) return h("p.soft", "No optimizer was given.");
  return h("div.ratios", some.map((each) => h("div.ratio", { data: { matrix: each.name, ratio: String(each.update_ratio) } }, h("span.mono.small", each.name), h("span.rail", h("i", { css: { left: at(LOW), width: `calc(${at(HIGH)} - ${at(LOW)})` } }), each.update_ratio > 0 ? h("b", { css: { left: at(each.update_ratio) } }) : null), h("span.num", number(each.update_ratio, 3)))));
}
