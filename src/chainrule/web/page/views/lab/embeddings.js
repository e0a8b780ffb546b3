// Embeddings: neighbors, analogies and a map of words or tokens; encodings of positions.

import { ask, query } from "../../lib/api.js";
import { debounce, exact, h, number, replace } from "../../lib/dom.js";
import { paint, unpack } from "../../lib/maps.js";
import { chooser, visible } from "../../lib/model.js";
import { pictureButton } from "../../lib/picture.js";
import { asPython, facts, heading, permalink } from "../../lib/parts.js";
import { plot } from "../../lib/plot.js";

export function render(place, visit) {
  place.classList.add("stack-large");
  const { below } = visit;
  if (below === "") return renderWords(place, visit);
  if (below === "positions") return renderPositions(place, visit);
  throw new Error(`/embeddings/${below}: there is no such page (the views are /embeddings and /embeddings/positions)`);
}

function tabs(current) {
  const tab = (name, href) => h("a.chip", { href, data: { link: "" }, "aria-current": current === name ? "page" : null }, name);
  return h("nav.row", { "aria-label": "Embeddings" }, tab("Words and tokens", "/embeddings"), tab("Positions", "/embeddings/positions"));
}

const shown = (word) => (/^\S+$/.test(word) ? word : visible(word));

async function renderWords(place, { params, remember, signal, work }) {
  const sources = await ask("/api/embeddings/sources");
  const named = params.get("run"), there = sources.some((each) => each.name === named);
  const state = { run: there ? named : sources[0].name, step: there && params.has("step") ? Number(params.get("step")) : null, word: params.get("word"), a: params.get("a") ?? "", b: params.get("b") ?? "", c: params.get("c") ?? "" };
  if (state.run === sources[0].name && !params.has("a")) Object.assign(state, { a: "lists", b: "list", c: "string" });
  let found = null;
  const result = h("div.stack-large"), map = plot("", { x: { label: "first principal component" }, y: { label: "second" }, square: true, legend: false, onpick: (each, i) => { field.value = state.word = each.full[i]; load(); } });
  const field = h("input.mono", { value: state.word ?? "", "aria-label": "Word", spellcheck: "false", oninput: debounce(350, () => { state.word = field.value; load(); }) });
  const part = (name) => h("input.mono", { value: state[name], size: "9", "aria-label": `Analogy ${name}`, spellcheck: "false", oninput: debounce(350, (event) => { state[name] = event.target.value.trim(); load(); }) });
  const missing = named && !there ? h("div.error", { role: "alert" }, `There is no run “${named}” with vectors; here are the built-in ones.`) : null;
  const parts = { a: part("a"), b: part("b"), c: part("c") };
  replace(place, heading("Embeddings", "Each word, or token, is a vector. Words that are used alike point in nearly the same direction.", permalink(), asPython(() => found?.python ?? "")), tabs("Words and tokens"), missing,
    h("div.card.stack", chooser(sources, state, () => { state.word = null; Object.assign(state, { a: "", b: "", c: "" }); for (const each of Object.values(parts)) each.value = ""; load(); }),
      h("div.row.align-end", h("label.field", "Word", field), h("div.field", h("span.small.soft", "Analogy"), h("div.row", parts.a, "−", parts.b, "+", parts.c)))), result);

  function load() {
    const given = { run: state.run, step: state.step, word: state.word || null, a: state.a || null, b: state.b || null, c: state.c || null };
    remember(new URLSearchParams(query(given)));
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/embeddings?${query(given)}`, { onjob, signal });
      if (!state.word) field.value = found.word;
      return draw();
    }, { keep: result.childElementCount > 0 });
  }

  function draw() {
    const { values } = unpack(found.map.points), near = new Set([found.word, ...found.neighbors.map((each) => each.word)]), goal = new Set([state.a, state.b, state.c, found.analogy[0]?.word].filter(Boolean));
    const points = found.map.words.map((word, i) => ({ word, x: values[2 * i], y: values[2 * i + 1] }));
    const group = (keep, color, size, labels) => { const some = points.filter((p) => keep(p.word)); return { x: some.map((p) => p.x), y: some.map((p) => p.y), full: some.map((p) => p.word), labels: some.map((p) => shown(p.word)), silent: !labels, line: false, color, size }; };
    map.draw([{ ...group((w) => !near.has(w) && !goal.has(w), 7, 2, false), name: "others" }, { ...group((w) => goal.has(w) && !near.has(w), 1, 4, true), name: "analogy" }, { ...group((w) => near.has(w), 0, 4, true), name: "neighbors" }]);
    const list = (rows, key) => h("div.bars", rows.map((each) => h("div.chance", { data: { [key]: each.word, value: String(each.cosine) } }, h("code", shown(each.word)), h("span.rail", h("span", { css: { width: `${100 * Math.max(0, each.cosine)}%` } })), h("span.num", number(each.cosine, 3)))));
    return [
      h("div.grid2", h("section.card.stack", h("h2", "Nearest to ", h("code", shown(found.word))), h("p.soft", "By the cosine of the angle between two vectors: 1 is the same direction, 0 a right angle."), list(found.neighbors, "neighbor")),
        h("section.card.stack", h("h2", "Analogy"), found.analogy.length ? [h("p.soft", h("code", shown(state.a)), " − ", h("code", shown(state.b)), " + ", h("code", shown(state.c)), " is nearest to:"), list(found.analogy, "answer")] : h("p.soft", "Fill in all three fields: king − man + woman should be near queen, if the text said enough about them."))),
      h("section.card.stack", h("div.row.between", h("h2", "Map"), facts([["vectors", found.size, 6, "size"], ["numbers each", found.dim, 5, "dim"], ["of the variance is shown", found.map.explained[0] + found.map.explained[1], 3, "explained"], ["mean cosine of all pairs", found.anisotropy, 3, "anisotropy"]])), map.root, h("p.small.soft", "The two directions in which the vectors differ most. Point at a dot to read it, choose one to see its neighbors.")),
      found.positions ? h("section.card.stack", h("h2", "Positions it learned"), positionMaps(found.positions)) : null,
    ];
  }
  addEventListener("theme", () => load(), { signal });
  await load();
}

function positionMaps({ table, cosines }) {
  return h("div.gates", [["Encoding: rows are positions, columns dimensions", table], ["How alike two positions are (cosine)", cosines]].map(([title, packed]) => {
    const { shape: [rows, columns], values } = unpack(packed), most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9), readout = h("p.readout");
    const canvas = paint(h(rows === columns ? "canvas.map.square" : "canvas.map", { role: "img", "aria-label": `${title}: ${rows} by ${columns}` }), values, rows, columns, { most, signed: true });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect(), i = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows)), j = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
      if (i >= 0 && j >= 0) replace(readout, `row ${i}, column ${j}: ${number(values[i * columns + j])}`);
    });
    const whole = h("figure", { data: { map: title.split(":")[0], first: String(values[0]), last: String(values.at(-1)) } }, h("figcaption.row.between", title, pictureButton("positions", () => whole)), canvas, readout);
    return whole;
  }));
}

async function renderPositions(place, { params, remember, signal, work }) {
  const state = { n: Number(params.get("n") ?? 64), d: Number(params.get("d") ?? 32), base: Number(params.get("base") ?? 10000) };
  let found = null;
  const result = h("div.stack-large");
  const load = () => {
    remember(new URLSearchParams(state));
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/embeddings/positions?${query(state)}`, { onjob, signal });
      return [h("section.card.stack", h("h2", "The encoding"), h("p.soft", "Each pair of columns is a clock hand that turns at a speed of its own: fast at the left, slow at the right. Blue is positive, orange negative."), positionMaps(found)),
        h("section.card.stack", h("h2", "How long a full turn takes"), h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "pair"), h("th.num", "positions for a turn"))), h("tbody", found.wavelengths.slice(0, 6).map((w, i) => h("tr", { data: { pair: String(i) } }, h("td.mono", i), exact("td.num", w, 5)))))))];
    }, { keep: result.childElementCount > 0 });
  };
  const later = debounce(120, load);
  const slide = (name, label, low, high, step = 2) => { const said = h("b.mono", state[name]); return h("label.field", h("span", `${label}: `, said), h("input", { type: "range", min: String(low), max: String(high), step: String(step), value: String(state[name]), "aria-label": label, oninput: (event) => { state[name] = Number(event.target.value); said.textContent = state[name]; later(); } })); };
  replace(place, heading("Embeddings", "Attention does not see order. So each position is given a vector of its own: sines and cosines of different speeds.", permalink(), asPython(() => found?.python ?? "")), tabs("Positions"),
    h("div.card.form", slide("n", "Positions", 4, 256), slide("d", "Dimensions", 4, 128), slide("base", "Base", 10, 20000, 10)), result);
  addEventListener("theme", () => load(), { signal });
  await load();
}
