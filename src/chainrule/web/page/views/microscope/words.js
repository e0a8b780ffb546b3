// Models without layers: a bag of words, whose labels are sums over words, and vectors of words.

import { h, number, replace } from "../../lib/dom.js";
import { labeled, paint, shaped, unpack } from "../../lib/maps.js";
import { visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";
import { signed } from "./causes.js";
import { rowAt } from "./outputs.js";

const SHOWN = 14; // terms, the largest first
const percent = (p) => `${number(100 * p, 3)} %`;

/** The sum that a label's logit is: a term for each word and each run of words. */
function sum(found, label) {
  const list = [...found.terms].sort((a, b) => Math.abs(b.adds[label]) - Math.abs(a.adds[label])), shown = list.slice(0, SHOWN), rest = list.slice(SHOWN);
  const most = Math.max(...list.map((term) => Math.abs(term.adds[label])), 1e-12), total = (terms) => terms.reduce((all, term) => all + term.adds[label], 0);
  return [h("p", "The logit of ", h("code", found.labels[label]), " is ", h("b", { data: { logit: String(found.bias[label] + total(list)) } }, number(found.bias[label] + total(list))), `: a bias of ${number(found.bias[label], 3)} and a term for each word and each run of words.`),
    h("p.small.soft", "Each adds what it counts in this text, more the rarer it is elsewhere, times a weight that was learned. Blue raises the logit, orange lowers it."),
    h("div.bars.wide", shown.map((term) => h("div.chance.term", { data: { term: term.words.join(" "), value: String(term.adds[label]) } }, h("code", { title: term.words.join(" ") }, term.words.map(visible).join(" ")),
      h("span.rail", h("span", { class: term.adds[label] < 0 ? "down" : "", css: { width: `${(100 * Math.abs(term.adds[label])) / most}%` } })), h("span.num", number(term.adds[label], 3)), h("span.small.soft", `${number(term.value, 2)} × ${number(term.weights[label], 2)}${term.count > 1 ? `, ${term.count} times` : ""}`)))),
    rest.length ? h("p.small.soft", `${rest.length} more add ${number(total(rest), 3)}.`) : null];
}

export async function bagCard({ state, seen, given, listeners, ask }) {
  const found = await ask(`/api/microscope/words?${given()}`);
  const terms = h("div.stack"), missing = h("div.stack");
  const draw = (at) => {
    const label = state.token in found.labels ? state.token : rowAt(seen, at)[0].id;
    replace(terms, sum(found, label));
    replace(missing, h("p.small.soft", "How the probability of ", h("code", found.labels[label]), " would change without each word: blue words speak for it, orange ones against it. Choose a word above."),
      signed(seen.pieces, found.without.map((row) => found.p[label] - row[label]), "What each word does to the label"),
      h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "label"), h("th.num", "of this text"), h("th.num", "without ", h("code", visible(seen.pieces[at]))))), h("tbody", found.labels.map((name, i) => h("tr", { data: { label: name } }, h("td", h("code", name)), h("td.num", percent(found.p[i])),
        h("td", { class: `num ${found.without[at][i] > found.p[i] ? "forward" : "backward"}`, data: { without: String(found.without[at][i]) } }, percent(found.without[at][i]))))))));
  };
  listeners.add(draw);
  draw(state.at);
  return h("div.stack-large", h("section.card.stack", h("h2", "Where it comes from"), terms), h("section.card.stack", h("h2", "What if a word were missing"), missing));
}

/** A map of signed numbers with what the pointer is at. */
function map(name, { shape: [rows, columns], values }, { most, names, across, css = {} }) {
  const read = h("p.readout.small"), canvas = paint(h("canvas.map", { role: "img", "aria-label": name, css }), values, rows, columns, { most, signed: true });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), i = Math.max(0, Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows))), j = Math.max(0, Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns)));
    replace(read, `${names[i]}, ${across(j)}: ${number(values[i * columns + j])}`);
  });
  return { canvas, read };
}

export async function wordsCard({ state, seen, given, listeners, ask }) {
  const found = await ask(`/api/microscope/words?${given()}`);
  const near = h("div.stack"), words = found.places.map((at) => visible(seen.pieces[at]));
  const draw = (at) => {
    const i = found.places.indexOf(at);
    if (i < 0) return replace(near, h("p.soft", { data: { unknown: "" } }, "This word has no vector: it occurred too seldom in the text that was learned from. Choose another."));
    return replace(near, h("p", "Nearest to ", h("code", words[i]), `, whose vector has length ${number(found.lengths[i], 3)}, by the cosine of their directions:`),
      h("div.bars", found.neighbors[i].map((each) => h("div.chance", { data: { neighbor: each.word, value: String(each.cosine) } }, h("code", each.word), h("span.rail", h("span", { class: each.cosine < 0 ? "down" : "", css: { width: `${100 * Math.abs(each.cosine)}%` } })), h("span.num", number(each.cosine, 3))))));
  };
  listeners.add(draw);
  draw(state.at);
  if (!words.length) return h("section.card.stack", h("h2", "What is near"), near);
  const cosines = unpack(found.cosines), vectors = unpack(found.vectors);
  const alike = map("Cosines of all pairs of words", cosines, { most: 1, names: words, across: (j) => words[j], css: shaped(words.length, words.length) });
  const rows = map("Vectors of the words", vectors, { most: vectors.values.reduce((a, x) => Math.max(a, Math.abs(x)), 1e-12), names: words, across: (j) => `number ${j}`, css: { "aspect-ratio": "auto", height: `${Math.min(420, 22 * words.length)}px`, "max-width": "none" } });
  const alikeFigure = h("div", labeled(alike.canvas, words, words), alike.read), rowsFigure = h("div", labeled(rows.canvas, words, null), rows.read);
  return h("div.stack-large", h("section.card.stack", h("h2", "What is near"), near),
    h("div.grid2", h("section.card.stack", h("div.row.between", h("h2", "How alike the words are"), pictureButton("cosines", () => alikeFigure)), h("p.soft", "The cosine of each pair: blue 1 is the same direction, orange the opposite."), alikeFigure),
      h("section.card.stack", h("div.row.between", h("h2", "Their vectors"), pictureButton("vectors", () => rowsFigure)), h("p.soft", `A row of ${seen.vector.size} numbers for each word; blue is positive, orange negative.`), rowsFigure)));
}
