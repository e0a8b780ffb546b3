// Scaling: a law fitted to a table of runs, with intervals and doubts; and what to train with a budget.

import { ask, query } from "../../lib/api.js";
import { count, debounce, exact, h, number, refill, replace } from "../../lib/dom.js";
import { asPython, halt, heading, permalink, problem } from "../../lib/parts.js";
import { plot } from "../../lib/plot.js";

export function render(place, visit) {
  place.classList.add("stack-large");
  const { below } = visit;
  if (below === "") return renderFit(place, visit);
  if (below === "plan") return renderPlan(place, visit);
  throw new Error(`/scaling/${below}: there is no such page (the views are /scaling and /scaling/plan)`);
}

function tabs(current) {
  const tab = (name, href) => h("a.chip", { href, data: { link: "" }, "aria-current": current === name ? "page" : null }, name);
  return h("nav.row", { "aria-label": "Scaling" }, tab("Fit a law", "/scaling"), tab("Plan a budget", "/scaling/plan"));
}

const SIZES = { params: "parameters N", tokens: "tokens D", flops: "compute C in FLOPs" };

async function renderFit(place, { params, remember, work }) {
  const about = await ask("/api/scaling/about");
  const header = (text) => (text.split("\n", 1)[0] ?? "").split(/[,\t]/).map((name) => name.trim());
  const state = { form: params.get("form") ?? "isoflop", quantity: params.get("quantity") ?? "flops", within: Number(params.get("within") ?? 4), own: null, columns: { loss: "loss", params: "params", tokens: "tokens" }, sizes: { params: 1e6, tokens: 2e7 } };
  let found = null;
  const form = h("div.stack"), result = h("div.stack-large"), guess = h("div");
  replace(place, heading("Scaling", "How does the loss fall with parameters, text and compute, what is the best size for a budget, and how sure can one be?", permalink(() => (state.own === null ? "" : "No link and no file holds your own table: “Copy as Python” does")), asPython(() => found?.python ?? "")), tabs("Fit a law"), h("div.card", form), result);

  const asked = () => ({ table: state.own, columns: state.own === null ? {} : Object.fromEntries(Object.entries(state.columns).filter(([, name]) => name)), form: state.form, quantity: state.quantity });
  function load() {
    remember(new URLSearchParams({ form: state.form, ...(single() ? { quantity: state.quantity } : {}), ...(state.form === "isoflop" ? { within: state.within } : {}) }));
    return work(result, async ({ onjob, signal }) => {
      found = await ask("/api/scaling/fit", { body: { ...asked(), within: state.form === "isoflop" ? state.within : null }, onjob, signal });
      return draw();
    }, { keep: result.childElementCount > 0 });
  }
  const later = debounce(400, load), single = () => ["power", "floor"].includes(state.form);

  function drawForm() {
    const names = state.own === null ? [] : header(state.own);
    const said = h("b.mono", number(state.within, 3));
    refill(form, h("div.form.roomy",
      h("label.field", "Runs", h("select", { onchange: (event) => { state.own = event.target.value === "own" ? about.table : null; drawForm(); load(); } }, h("option", { value: "ours", selected: state.own === null }, "our study: 45 small GPTs"), h("option", { value: "own", selected: state.own !== null }, "a table of your own (CSV)"))),
      h("label.field", "Law", h("select", { "aria-label": "Law", onchange: (event) => { state.form = event.target.value; drawForm(); load(); } }, about.forms.map((each) => h("option", { value: each.name, selected: each.name === state.form }, `${each.name}: ${each.about}`)))),
      single() && h("label.field", "In", h("select", { onchange: (event) => { state.quantity = event.target.value; load(); } }, about.quantities.map((name) => h("option", { value: name, selected: name === state.quantity }, SIZES[name])))),
      state.form === "isoflop" && h("label.field", h("span", "Sizes within a factor of ", said, " of the best"), h("input", { type: "range", min: "2", max: "12", step: "0.5", value: String(state.within), "aria-label": "Sizes within a factor", oninput: (event) => { state.within = Number(event.target.value); said.textContent = number(state.within, 3); later(); } }))),
    state.own !== null && [h("label.field", "Table with a header, a row per run", h("textarea.mono", { rows: "6", value: state.own, spellcheck: "false", oninput: (event) => { state.own = event.target.value; drawColumns(); later(); } })),
      h("label.field.inline", "or a file", h("input", { type: "file", accept: ".csv,.tsv,text/csv", onchange: async (event) => { const file = event.target.files[0]; if (!file) return; if (file.size > about.longest) { halt(result); replace(result, problem(new Error(`${file.name} has ${count(file.size)} bytes (a table has at most ${count(about.longest)})`))); return; } state.own = await file.text(); drawForm(); load(); } })), columns]);
    drawColumns(names);
  }
  const columns = h("div.form");
  function drawColumns() {
    const names = state.own === null ? [] : header(state.own);
    replace(columns, ["loss", "params", "tokens", "flops"].map((what) => h("label.field", `Column of ${what}`, h("select", { onchange: (event) => { state.columns[what] = event.target.value; load(); } }, what !== "loss" && h("option", { value: "" }, "–"), names.map((name) => h("option", { value: name, selected: state.columns[what] === name }, name))))));
  }

  function draw() {
    const size = found.form === "isoflop" ? "params" : ["power", "floor", "envelope"].includes(found.form) ? found.quantity : "flops";
    const picture = plot(found.form === "isoflop" ? "Loss against size, a color for each budget" : "Runs and law", { x: { label: SIZES[size], log: true }, y: { label: "loss in nats", log: found.form !== "isoflop" }, height: 380 });
    const { rows } = found;
    if (found.form === "isoflop") {
      picture.draw(found.curves.flatMap((curve, i) => {
        const mine = rows.flops.map((c, k) => k).filter((k) => Math.abs(Math.log(rows.flops[k] / curve.flops)) < 0.2);
        const valley = found.valleys.find((each) => each.flops === curve.flops);
        return [{ name: `${number(curve.flops, 2)} FLOPs`, x: curve.x, y: curve.y, color: i }, { x: mine.map((k) => rows.params[k]), y: mine.map((k) => rows.loss[k]), line: false, color: i }, { x: [valley.params], y: [valley.loss], line: false, size: 7, color: i }];
      }));
    } else picture.draw([{ name: "runs", x: rows[size], y: rows.loss, line: false, color: 0 }, ...found.curves.map((curve) => ({ name: "law", x: curve.x, y: curve.y, color: 1 }))]);
    return [
      h("div.grid2.uneven", h("section.card.stack", picture.root),
        h("section.card.stack", h("h2", "What is known"), h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "number"), h("th.num", "value"), h("th.num", "95 % interval"))),
          h("tbody", found.numbers.map((name) => h("tr", { data: { estimate: name } }, h("td.mono", name), exact("td.num", found[name].value, 4), h("td.num", `${number(found[name].low, 3)} … ${number(found[name].high, 3)}`)))))),
        found.form === "isoflop" && h("p.small.soft", "The best size grows as C^a, the text as C^b. Chinchilla found a = 0.5."),
        found.validation?.measured && h("p.small.soft", { data: { predicted: String(found.validation.predicted) } }, `Left out and predicted by the others, the largest run should have ${number(found.validation.predicted)} (${number(found.validation.low)} … ${number(found.validation.high)}); measured: ${number(found.validation.measured)}.`),
        h("p.small.soft", `${found.runs} runs.`))),
      found.valleys.length ? h("section.card.stack", h("h2", "The best size of each budget"), h("div.scroll", h("table.plain", h("thead", h("tr", h("th.num", "FLOPs"), h("th.num", "best N"), h("th.num", "tokens"), h("th.num.wide", "tokens per parameter"), h("th.num", "loss"))),
        h("tbody", found.valleys.map((each) => h("tr", { data: { valley: String(each.params) } }, exact("td.num", each.flops, 3), exact("td.num", each.params, 4), exact("td.num", each.tokens, 3), h("td.num.wide", number(each.tokens / each.params, 3)), exact("td.num", each.loss, 4))))))) : null,
      h("section.card.stack", h("h2", "Doubts"), found.remarks.length ? h("ul.plainlist", found.remarks.map((remark) => h("li", { data: { code: remark.code } }, remark.text))) : h("p.soft", "None: the data support this law."),
        found.dropped.length ? h("p.small.soft", `Left out: ${found.dropped.join("; ")}.`) : null),
      ["chinchilla", "kaplan", "power", "floor"].includes(found.form) ? h("section.card.stack", h("h2", "Predict"), predictForm(), guess) : null,
    ];
  }

  function predictForm() {
    const wanted = single() ? [state.quantity] : ["params", "tokens"];
    const ask_ = () => work(guess, async ({ onjob, signal }) => {
      const said = await ask("/api/scaling/predict", { body: { ...asked(), sizes: Object.fromEntries(wanted.map((name) => [name, state.sizes[name] ?? 1e12])) }, onjob, signal });
      return h("p", { data: { prediction: String(said.loss.value) } }, "Expected loss ", h("b", number(said.loss.value)), ` nats, 95 % interval ${number(said.loss.low)} to ${number(said.loss.high)}. `, said.speculation ? h("span.badge.bad", `speculation: ${number(said.decades, 2)} decades beyond the data`) : h("span.badge.good", said.decades > 0 ? `${number(said.decades, 2)} decades beyond the data` : "within the data"));
    }, { keep: true });
    const soon = debounce(250, ask_);
    ask_();
    return h("div.form", wanted.map((name) => h("label.field", SIZES[name], h("input.mono", { value: String(state.sizes[name] ?? 1e12), inputmode: "decimal", oninput: (event) => { const value = Number(event.target.value); if (value > 0) { state.sizes[name] = value; soon(); } } }))));
  }

  drawForm();
  await load();
}

const OPTIONS = { rule: "rule of thumb", law: "fitted law", smaller: "smaller model", epochs: "several epochs", larger: "larger model", serving: "with its use" };

async function renderPlan(place, { params, remember, work }) {
  const about = await ask("/api/scaling/about");
  const state = { compute: Number(params.get("compute") ?? 1e18), available: params.get("available") ? Number(params.get("available")) : null, served: params.get("served") ? Number(params.get("served")) : null };
  let found = null;
  const result = h("div.stack-large");
  const slide = (name, label, low, high, off) => {
    const said = h("b.mono", state[name] === null ? off : number(state[name], 3));
    const value = state[name] === null ? low - 0.5 : Math.log10(state[name]);
    return h("label.field", h("span", `${label}: `, said), h("input", { type: "range", min: String(off ? low - 0.5 : low), max: String(high), step: "0.1", value: String(value), "aria-label": label, "aria-valuetext": said.textContent, oninput: (event) => {
      const x = Number(event.target.value);
      state[name] = off && x < low ? null : Number((10 ** x).toPrecision(2));
      said.textContent = state[name] === null ? off : number(state[name], 3);
      event.target.setAttribute("aria-valuetext", said.textContent);
      later();
    } }));
  };
  const load = () => {
    remember(new URLSearchParams(query(state)));
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/scaling/plan?${query(state)}`, { onjob, signal });
      return draw();
    }, { keep: result.childElementCount > 0 });
  };
  const later = debounce(100, load);
  replace(place, heading("Scaling", "What to train with a budget: the size, the text, and the loss to expect by the law of Chinchilla.", permalink(), asPython(() => found?.python ?? "")), tabs("Plan a budget"),
    h("div.card.form.roomy", slide("compute", "Compute in FLOPs", about.decades[0], about.decades[1]), slide("available", "Tokens of text there are", 6, 14, "enough"), slide("served", "Tokens it will serve", 6, 16, "not counted")), result);

  function draw() {
    const picture = plot("Parameters and tokens", { x: { label: "parameters N", log: true }, y: { label: "tokens D", log: true }, height: 320 });
    const xs = found.options.map((each) => each.params), low = Math.min(...xs) / 30, high = Math.max(...xs) * 30;
    picture.draw([{ name: "the whole budget: 6 N D = C", x: [low, high], y: [state.compute / (6 * low), state.compute / (6 * high)], color: 7, dashed: true },
      ...found.options.map((each, i) => ({ name: OPTIONS[each.name], x: [each.params], y: [each.tokens], color: i, line: false, size: 7 }))]);
    return h("div.stack-large", h("section.card.stack", h("h2", "Options"), h("div.scroll", h("table.plain", h("thead", h("tr", h("th", "what"), h("th.num", "parameters"), h("th.num", "tokens"), h("th.num.wide", "tokens / parameter"), h("th.num", "expected loss"))),
      h("tbody", found.options.map((each) => h("tr", { data: { option: each.name } }, h("td", h("b", OPTIONS[each.name]), h("div.small.soft", each.about)), exact("td.num", each.params, 3), exact("td.num", each.tokens, 3), h("td.num.wide", number(each.tokens / each.params, 3)), each.loss === null ? h("td.num.small.soft", { data: { unknown: each.name } }, each.unknown) : exact("td.num", each.loss, 4)))))), h("p.small.soft", "Losses are those of the law of Hoffmann et al. (2022), fitted again in 2024, on their text and tokenizer: differences carry over, constants do not.")),
    h("section.card.stack", picture.root));
  }
  await load();
}
