// n-grams: the table of what follows what as a heat map, the same as a graph, and words drawn from it.

import { ask, query } from "../../lib/api.js";
import { count, debounce, h, number, refill, replace, s } from "../../lib/dom.js";
import { unpack } from "../../lib/maps.js";
import { pictureButton } from "../../lib/picture.js";
import { asPython, facts, heading, permalink } from "../../lib/parts.js";

const VERTICES = 14, EDGES = 46;

export async function render(place, { params, remember, work }) {
  place.classList.add("stack-large");
  const about = await ask("/api/ngrams/about");
  const state = {
    source: params.get("source") ?? "words", own: params.get("own") ?? about.example, order: Number(params.get("order") ?? 2), before: params.get("before") ?? "",
    method: params.get("method") ?? "mle", s: Number(params.get("s") ?? 1), seed: Number(params.get("seed") ?? 0), row: params.get("row"),
  };
  let found = null;
  const form = h("div.stack"), result = h("div.stack-large");
  replace(place, heading("n-grams", "The simplest language model counts: how often did each letter follow each other one? Every row is a distribution over the next letter.", permalink(), asPython(() => found?.python ?? "")),
    h("div.card", form), result);

  const asked = () => ({ source: state.source, own: state.source === "own" ? state.own : null, order: state.order, before: state.order > 2 ? state.before : null, method: state.method, s: state.method === "add" ? state.s : null, seed: state.seed });
  const keep = () => remember(new URLSearchParams(query({ ...asked(), row: state.row })));
  function load() {
    keep();
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/ngrams?${query(asked())}`, { onjob, signal });
      return draw();
    }, { keep: result.childElementCount > 0 });
  }
  const later = debounce(250, load);

  function drawForm() {
    const choose = (name, label, options) => h("label.field", label, h("select", { onchange: (event) => { state[name] = event.target.value; drawForm(); load(); } },
      Object.entries(options).map(([value, text]) => h("option", { value, selected: value === state[name] }, text))));
    const said = h("b.mono", state.order);
    refill(form,
      h("div.form.roomy", choose("source", "Words", about.sources), choose("method", "Probabilities", about.methods),
        h("label.field", h("span", "Order n: ", said), h("input", { type: "range", min: String(about.orders[0]), max: String(about.orders[1]), value: String(state.order), "aria-label": "Order", oninput: (event) => { state.order = Number(event.target.value); drawForm(); later(); } })),
        state.method === "add" && h("label.field", "Added to every count", h("input.mono", { value: String(state.s), inputmode: "decimal", oninput: (event) => { const value = Number(event.target.value); if (event.target.value && value >= 0) { state.s = value; later(); } } })),
        state.order > 2 && h("label.field", `Letters before the row's (${state.order - 2})`, h("input.mono", { value: state.before, maxlength: String(state.order - 2), oninput: (event) => { state.before = event.target.value; later(); } }))),
      state.source === "own" && h("label.field", "Your words, one per line", h("textarea.mono", { rows: "5", value: state.own, oninput: (event) => { state.own = event.target.value; later(); } })));
  }

  function draw() {
    const table = unpack(found.table), counts = unpack(found.counts), [rows, columns] = table.shape;
    const names = found.tokens, label = (i) => (rows === 1 ? "any" : (found.before + names[i]));
    let row = Math.max(0, names.indexOf(state.row));
    if (rows === 1) row = 0;
    const bars = h("div.stack"), body = h("tbody"), drawing = h("div.scroll.graph");
    const at = (i, j) => table.values[i * columns + j];

    replace(body, Array.from({ length: rows }, (_, i) => h("tr", { data: { row: names[i] } },
      h("th", { scope: "row" }, h("button.quiet.tight.mono", { type: "button", "aria-label": `After ${label(i)}`, onclick: () => pick(i) }, rows === 1 ? "·" : names[i])),
      Array.from({ length: columns }, (_, j) => h("td.cell", { css: { "--weight": `${Math.round(100 * Math.sqrt(at(i, j)))}%` }, data: { value: String(at(i, j)) }, title: `after ${label(i)} comes ${names[j]}: ${number(100 * at(i, j), 3)} %, counted ${count(counts.values[i * columns + j])}`, onclick: () => pick(i) })))));

    function pick(i) {
      row = i;
      state.row = names[i];
      keep();
      show();
    }

    function show() {
      for (const each of body.children) each.classList.toggle("chosen", each.dataset.row === names[row]);
      const order = names.map((_, j) => j).sort((a, b) => at(row, b) - at(row, a)).filter((j) => at(row, j) > 0).slice(0, 9);
      replace(bars, h("h3", "After ", h("code", rows === 1 ? "anything" : label(row))), h("div.bars", order.map((j) => h("div.chance", { data: { token: names[j], p: String(at(row, j)) } }, h("code", names[j] === "." ? ". (end)" : names[j]), h("span.rail", h("span", { css: { width: `${100 * at(row, j)}%` } })), h("span.num", `${number(100 * at(row, j), 3)} %`)))),
        h("p.small.soft", `Seen ${count(counts.values.slice(row * columns, (row + 1) * columns).reduce((a, b) => a + b, 0))} times.`));
      replace(drawing, rows > 1 ? graph(found, table, row, pick) : h("p.soft", "Without a context there is nothing to connect: choose order 2 or more."));
    }
    show();
    return [
      h("section.card", facts([["loss, in nats", found.nll, 4, "nll"], ["loss on new words", found.held_out ?? Infinity, 4, "held_out"], ["perplexity", found.perplexity, 4, "perplexity"], ["a blind guess: ln V", found.uniform_nll, 4, "uniform"], ["grams that occur", found.stored, 7, "stored"], ["of possible", found.table_size, 7, "table"]]),
        h("p.small.soft", found.held_out === null ? "On a tenth of the words, held back, something occurs that was never counted: its probability is 0, and the loss infinite. That is what smoothing is for."
          : `On a tenth of the words, held back, the loss is ${number(found.held_out)} nats.`)),
      h("div.grid2.uneven", h("section.card.stack", h("h2", "What follows what"), h("p.soft", "Rows: the letter before. Columns: the next one. The point begins and ends a word. Choose a row."),
        h("div.scroll", { tabindex: "0", role: "group", "aria-label": "Transition table" }, h("table.matrix", h("thead", h("tr", h("td"), names.map((name) => h("th.mono", { scope: "col" }, name)))), body))),
      h("section.card.stack", bars)),
      h("div.grid2", h("section.card.stack", h("div.row.between", h("h2", "The same as a graph"), pictureButton("transitions", () => drawing)), h("p.soft", `The ${Math.min(VERTICES, names.length)} most frequent letters; the darker an arrow, the likelier. Orange leave the chosen one.`), drawing),
        h("section.card.stack", h("div.row.between", h("h2", "New words"), h("button", { type: "button", onclick: () => { state.seed += 1; load(); } }, "Draw others")), h("p.soft", "Begin at the point, draw a letter from its row, go to that letter's row, and on until the point comes."), h("ul.samples", found.samples.map((word) => h("li.mono", word || "∅"))))),
    ];
  }

  drawForm();
  await load();
}

/** Vertices on a circle; an arrow for each of the likeliest transitions among them. */
function graph(found, { values, shape: [, columns] }, chosen, pick) {
  const kept = found.tokens.map((_, i) => i).sort((a, b) => found.frequencies[b] - found.frequencies[a]).slice(0, VERTICES);
  if (!kept.includes(chosen)) kept[kept.length - 1] = chosen;
  const size = 470, middle = size / 2, radius = 185;
  const place = new Map(kept.map((i, k) => { const angle = (2 * Math.PI * k) / kept.length - Math.PI / 2; return [i, [middle + radius * Math.cos(angle), middle + radius * Math.sin(angle)]]; }));
  const edges = kept.flatMap((i) => kept.map((j) => [i, j, values[i * columns + j]])).filter(([i, j, p]) => p > 0 && i !== j).sort((a, b) => b[2] - a[2]);
  const shown = edges.filter(([i], k) => k < EDGES || i === chosen).sort((a, b) => (a[0] === chosen) - (b[0] === chosen));
  const arrow = ([i, j, p]) => {
    const [a, b] = place.get(i), [c, d] = place.get(j), far = Math.hypot(c - a, d - b), bend = 0.16;
    const mx = (a + c) / 2 - (d - b) * bend, my = (b + d) / 2 + (c - a) * bend, tx = c - mx, ty = d - my, t = Math.hypot(tx, ty);
    const [ex, ey] = [c - (tx / t) * 20, d - (ty / t) * 20];
    const [ux, uy] = [tx / t, ty / t];
    const mine = i === chosen;
    return s("g", { class: mine ? "arrow mine" : "arrow", css: { opacity: String(mine ? 0.35 + 0.65 * Math.sqrt(p) : 0.1 + 0.7 * p) } }, s("path", { d: `M${a} ${b} Q${mx} ${my} ${ex} ${ey}`, css: { "stroke-width": `${(1 + 5 * p) * (far ? 1 : 0)}px` } }),
      s("path.head", { d: `M${ex} ${ey} L${ex - 9 * ux + 4 * uy} ${ey - 9 * uy - 4 * ux} L${ex - 9 * ux - 4 * uy} ${ey - 9 * uy + 4 * ux} Z` }), s("title", {}, `${found.tokens[i]} → ${found.tokens[j]}: ${number(100 * p, 3)} %`));
  };
  const vertex = (i) => { const [x, y] = place.get(i); return s("g", { class: `vertex${i === chosen ? " chosen" : ""}`, role: "button", tabindex: "0", "aria-label": `After ${found.tokens[i]}`, onclick: () => pick(i), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(i); } } }, s("circle", { cx: x, cy: y, r: 19 }), s("text", { x, y: y + 5, "text-anchor": "middle" }, found.tokens[i])); };
  return s("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, "aria-label": "Graph of transitions", role: "group" }, shown.map(arrow), kept.map(vertex));
}
