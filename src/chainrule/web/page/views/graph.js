// An expression as a computation graph, with both passes step by step.

import { ask, query } from "../lib/api.js";
import { debounce, exact, h, number, replace, s } from "../lib/dom.js";
import { asPython, heading, permalink, problem } from "../lib/parts.js";
import { pictureButton } from "../lib/picture.js";

const BOX = 58, UNIT = 66, CHAR = 9.1, PAD = 12, GAP = 78, NARROW = 34, MARGIN = 22;
const KNOWN = new Set(["e", "step"]);
const opWidth = (node) => (node.op ? Math.max(34, node.op.length * CHAR + 20) : 0);
const boxWidth = (node) => Math.max(100, (node.label.length + 2 + number(node.data).length) * CHAR + 2 * PAD, (number(node.grad).length + 3) * CHAR + 2 * PAD);

export async function render(place, { params, remember }, tabs) {
  const examples = await ask("/api/calculus/examples");
  const first = examples[0];
  const state = {
    text: params.get("e") ?? first.text,
    values: params.has("e") ? Object.fromEntries([...params].filter(([key]) => !KNOWN.has(key)).map(([key, x]) => [key, Number(x)])) : { ...first.values },
    step: params.has("step") ? Number(params.get("step")) : null,
    graph: null,
  };
  const field = h("textarea.mono.expression", { rows: "2", spellcheck: "false", autocapitalize: "off", "aria-label": "Expression", value: state.text,
    oninput: debounce(250, () => { state.text = field.value; state.step = null; load(); }) });
  const chips = h("div.row", examples.map((example) => h("button.chip", { type: "button", onclick: () => {
    field.value = state.text = example.text;
    state.values = { ...example.values };
    state.step = null;
    load();
  } }, example.title)));
  const variables = h("div.row.variables");
  const picture = h("div.scroll.graph", { tabindex: "0", role: "group", "aria-label": "Computation graph. Arrow keys step through both passes.", onkeydown: keys });
  const controls = h("div.row.controls");
  const said = h("p.said", { "aria-live": "polite" });
  const check = h("div");
  const wrong = h("div");
  const result = h("div.stack", h("div.card.stack", controls, said, picture), h("div.card.stack",
    h("h2", "Is it right?"), h("p.soft", "Each gradient beside the slope found by moving that number a little, up and down."), check));

  replace(place,
    heading("Calculus", "Write an expression and watch the chain rule at work: values flow forward, gradients flow back.",
      permalink(), asPython(() => state.graph?.python ?? "")),
    tabs,
    h("div.card.stack",
      h("label.field", "Expression", field),
      h("p.small.soft", "Numbers, names, + − * / ** and exp, log, sin, cos, tanh, sigmoid, relu, sqrt. A line such as h = w * x names a part."),
      chips, variables),
    wrong, result);
  place.classList.add("stack-large");

  let asked = 0;
  async function load() {
    const mine = ++asked;
    try {
      const graph = await ask(`/api/calculus/graph?${query({ e: state.text, ...state.values })}`);
      if (mine !== asked) return;
      state.graph = graph;
      state.values = graph.values;
      replace(wrong);
      result.hidden = false;
      draw();
    } catch (error) {
      if (mine !== asked) return;
      replace(wrong, problem(error));
      result.hidden = true;
    }
  }

  const last = () => state.graph.forward.length + state.graph.backward.length;

  function move(to) {
    state.step = Math.max(0, Math.min(last(), to));
    if (state.step === last()) state.step = null;
    drawStep();
  }

  function keys(event) {
    const now = state.step ?? last();
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last() }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  }

  function drawVariables() {
    const names = Object.keys(state.values);
    if ([...variables.querySelectorAll("input")].map((each) => each.name).join() === names.join()) {
      for (const input of variables.querySelectorAll("input")) if (document.activeElement !== input) input.value = state.values[input.name];
      return;
    }
    replace(variables, names.map((name) => h("label.field", name, h("input.mono", {
      type: "number", step: "0.1", name, value: state.values[name],
      oninput: debounce(150, (event) => {
        const x = Number(event.target.value);
        if (event.target.value.trim() === "" || !Number.isFinite(x)) return;
        state.values[name] = x;
        load();
      }),
    }))));
  }

  function draw() {
    drawVariables();
    drawStep();
    const { check: rows } = state.graph;
    replace(check, rows.length ? h("div.scroll", h("table.plain", h("thead", h("tr", ["number", "value", "gradient", "by differences", ""].map((t, i) => h(`th${i && i < 4 ? ".num" : ""}${i === 1 ? ".wide" : ""}`, t)))),
      h("tbody", rows.map((row) => {
        const close = row.difference !== null && Math.abs(row.grad - row.difference) <= 1e-6 * Math.max(1, Math.abs(row.grad));
        return h("tr", { data: { variable: row.name } }, h("td", h("code", row.name)), exact("td.num.forward.wide", state.values[row.name]), exact("td.num.backward", row.grad, 6),
          exact("td.num", row.difference, 6), h("td", row.difference === null ? h("span.badge", "the step leaves the domain")
            : close ? h("span.badge.good", "✓ agrees") : h("span.badge.bad", "differs")));
      })))) : h("p.soft", "Nothing to vary: the expression has no names."));
  }

  function drawStep() {
    const { forward, backward } = state.graph;
    const total = last();
    const now = state.step ?? total;
    const params = new URLSearchParams({ e: state.text, ...state.values });
    if (state.step !== null) params.set("step", state.step);
    remember(params);
    const button = (text, label, to, off) => h("button", { type: "button", "aria-label": label, disabled: off, onclick: () => move(to) }, text);
    replace(controls,
      button("Start", "To the start", 0, now === 0), button("← Back", "One step back", now - 1, now === 0),
      button("Step →", "One step on", now + 1, now === total), button("End", "To the end", total, now === total),
      h("span", { class: now > forward.length ? "badge backward" : "badge forward" },
        now > forward.length ? `backward ${now - forward.length} of ${backward.length}` : `forward ${now} of ${forward.length}`),
      pictureButton("graph", () => picture));
    const back = now > forward.length ? backward[now - forward.length - 1] : null;
    replace(said, sentence(state.graph, now));
    replace(picture, drawGraph(state.graph, now, back, picture.clientWidth - 12));
    const box = picture.querySelector(".node.on .box, .node.back .box")?.getBoundingClientRect();
    const view = picture.getBoundingClientRect();
    if (box && (box.left < view.left || box.right > view.right)) picture.scrollLeft += (box.left + box.right - view.left - view.right) / 2;
  }

  await load();
}

function name(graph, i) {
  const node = graph.nodes[i];
  return node.label || (node.op ? `this ${node.op}` : number(node.data));
}

function sentence(graph, now) {
  const { nodes, forward, backward } = graph;
  if (now === 0) return "The leaves are given. Step on: each operation computes its number from its children.";
  if (now <= forward.length) {
    const i = forward[now - 1];
    const node = nodes[i];
    return [h("b", node.label || "This node"), ` applies `, h("code", node.op), ` to ${node.children.map((c) => number(nodes[c].data)).join(" and ")}: `,
      h("span.forward", number(node.data)), "."];
  }
  const step = backward[now - forward.length - 1];
  const start = step.node === graph.root ? [h("b", name(graph, step.node)), " is where it begins: its gradient is ", h("span.backward", "1"), ". "]
    : [h("b", name(graph, step.node)), " has its whole gradient, ", h("span.backward", number(step.grad)), ". "];
  if (!step.shares.length) return [start, "It is a leaf: nothing is passed on."];
  return [start, "It passes on, times the slope: ", step.shares.map((share, i) => [i ? "; " : "", h("code", name(graph, share.child)), ` gets ${number(step.grad)} × ${number(share.slope)} = `,
    h("span.backward", number(share.amount)), share.total !== share.amount ? `, now ${number(share.total)}` : ""]), "."];
}

function drawGraph(graph, now, back, wanted) {
  const { nodes, columns, edges, forward, backward } = graph;
  const computed = new Set(forward.slice(0, now));
  const visited = backward.slice(0, Math.max(0, now - forward.length));
  const totals = new Map(visited.length ? [[graph.root, 1]] : []);
  for (const step of visited) for (const share of step.shares) totals.set(share.child, share.total);
  const active = back ? back.node : forward[now - 1];

  const sizes = columns.map((column) => {
    const found = column.filter((p) => p.node !== null).map((p) => nodes[p.node]);
    return { ops: Math.max(0, ...found.map(opWidth)), box: Math.max(0, ...found.map(boxWidth)) };
  });
  const filled = sizes.reduce((sum, { ops, box }) => sum + ops + (ops ? 14 : 0) + box, 2 * MARGIN), gaps = Math.max(1, columns.length - 1);
  const gap = Math.max(NARROW, Math.min(GAP, (wanted - filled) / gaps)); // as wide as the page allows, so that all of it is seen
  let x = MARGIN;
  const spans = sizes.map(({ ops, box }) => {
    const left = x, opRight = x + ops, boxLeft = opRight + (ops ? 14 : 0), right = boxLeft + box;
    x = right + gap;
    return { left, opRight, boxLeft, right };
  });
  const width = x - gap + MARGIN;
  const height = Math.max(...columns.flat().map((p) => p.y)) * UNIT + UNIT / 2 + 2 * MARGIN;
  const at = ([i, j]) => ({ ...spans[i], y: columns[i][j].y * UNIT + MARGIN, node: columns[i][j].node });

  const same = new Map();
  const lines = edges.map((path) => {
    const places = path.map(at);
    const [start, end] = [places[0], places.at(-1)];
    const key = `${start.node}-${end.node}`;
    const twin = same.get(key) ?? 0;
    same.set(key, twin + 1);
    const twins = edges.filter((p) => at(p[0]).node === start.node && at(p.at(-1)).node === end.node).length;
    const lane = (twin - (twins - 1) / 2) * 9;
    let here = start.right, y = start.y + lane, d = `M${here} ${y}`;
    for (const next of places.slice(1)) {
      const to = next.y + lane, middle = (here + next.left) / 2;
      d += ` C${middle} ${y} ${middle} ${to} ${next.left} ${to}`;
      d += ` H${next.node === null ? next.right : next.opRight - opWidth(nodes[next.node])}`;
      here = next.right;
      y = to;
    }
    const on = back ? end.node === back.node : end.node === active;
    const share = back && on ? back.shares[nodes[end.node].children.map((c, k) => [c, k]).filter(([c]) => c === start.node)[twin]?.[1]] : null;
    return [s("path", { d, class: `edge${on ? (back ? " back" : " on") : ""}` }),
      share && s("text.slope", { x: (start.right + places[1].left) / 2, y: (start.y + places[1].y) / 2 + lane - 6, "text-anchor": "middle" }, number(share.amount))];
  });

  const boxes = columns.flatMap((column, i) => column.filter((p) => p.node !== null).map((p) => {
    const node = nodes[p.node], span = spans[i], y = p.y * UNIT + MARGIN;
    const known = !node.op || computed.has(p.node), grad = totals.get(p.node);
    const kind = p.node === graph.root ? "root" : node.op ? "inner" : "leaf";
    const parts = [];
    if (node.op) {
      const wide = opWidth(node);
      parts.push(s("path.join", { d: `M${span.opRight} ${y} H${span.boxLeft}` }),
        s("rect.op", { x: span.opRight - wide, y: y - 17, width: wide, height: 34, rx: 17 }),
        s("text.opname", { x: span.opRight - wide / 2, y: y + 5, "text-anchor": "middle" }, node.op));
    }
    parts.push(
      s("rect.box", { x: span.boxLeft, y: y - BOX / 2, width: span.right - span.boxLeft, height: BOX, rx: 10 }),
      s("text.label", { x: span.boxLeft + PAD, y: y - 6 }, node.label),
      s("text.data", { x: span.right - PAD, y: y - 6, "text-anchor": "end" }, known ? number(node.data) : "?"),
      s("text.gradname", { x: span.boxLeft + PAD, y: y + 18 }, "∂"),
      s("text.grad", { x: span.right - PAD, y: y + 18, "text-anchor": "end" }, grad === undefined ? "·" : number(grad)));
    return s("g", { class: `node ${kind}${p.node === active ? (back ? " back" : " on") : ""}`, data: { node: node.label, value: String(node.data), grad: grad === undefined ? "" : String(grad) } },
      s("title", {}, `${node.label || node.op || "number"}: value ${node.data}, gradient ${node.grad}`), parts);
  }));
  return s("svg", { width, height, css: { "min-width": `${0.62 * width}px` }, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The graph of the expression" }, lines, boxes);
}
