// One step of a run once more: its batch, what each layer did, how each matrix moved, and any array that went through.

import { ask, query } from "../lib/api.js";
import { count, h, number, replace } from "../lib/dom.js";
import { findingList } from "../lib/findings.js";
import { paint, unpack } from "../lib/maps.js";
import { asPython } from "../lib/parts.js";
import { pictureButton } from "../lib/picture.js";

const address = (name) => name.split("/").map(encodeURIComponent).join("/");

/** A histogram as a row of small bars. */
function bars({ counts, edges }, tone) {
  const most = Math.max(...counts, 1), step = Math.max(1, Math.ceil(counts.length / 40)), grouped = [];
  for (let i = 0; i < counts.length; i += step) grouped.push(counts.slice(i, i + step).reduce((a, b) => Math.max(a, b), 0));
  return h("span.histogram", { role: "img", "aria-label": `From ${number(edges[0], 3)} to ${number(edges.at(-1), 3)}`, title: `${number(edges[0], 3)} to ${number(edges.at(-1), 3)}` }, grouped.map((n) => h("i", { class: tone, css: { height: `${Math.max(1, (28 * n) / most)}px` } })));
}

export function replayCard(name, { params, remember, work }) {
  const body = h("div.stack"), field = h("input", { type: "number", min: "1", value: params.get("replay") ?? "1", "aria-label": "Step to replay", onkeydown: (event) => { if (event.key === "Enter") play(); } });
  let python = "";
  const play = () => {
    const step = Number(field.value);
    remember(new URLSearchParams({ replay: step }));
    return work(body, async ({ onjob, signal }) => {
      const found = await ask(`/api/runs/${address(name)}/replay?${query({ step })}`, { onjob, signal });
      python = found.python;
      return draw(found);
    });
  };

  function draw(found) {
    const values = h("div"), names = Object.keys(found.arrays);
    const show = (array) => array && work(values, async ({ onjob, signal }) => {
      const value = await ask(`/api/runs/${address(name)}/replay-array?${query({ step: found.step, array })}`, { onjob, signal });
      const { shape: [rows, columns], values: numbers } = unpack(value.values), most = Math.max(Math.abs(value.least), Math.abs(value.most), 1e-12);
      return h("div.stack.values", { data: { array } }, h("div.row.between", h("div.row", h("b.mono.small", array), h("span.mono.small.soft", `(${value.shape.join(", ")})`), ["mean", "std", "least", "most"].map((key) => h("span.badge", { data: { stat: key, value: String(value[key]) } }, `${key} ${number(value[key])}`))), pictureButton(array.replaceAll("/", "-"), () => values)),
        paint(h("canvas.map.value", { role: "img", "aria-label": `Values of ${array}` }), numbers, rows, columns, { most, signed: true }), value.cut && h("p.small.soft", `The first ${count(rows)} rows.`));
    });
    const fact = (title, id, x) => h("div.fact", h("span.small.soft", title), h("b", { data: { replayed: id, value: String(x) } }, number(x, 5)));
    return h("div.stack",
      h("div.row", found.same ? h("span.badge.good", `✓ the bits of the log, from step ${count(found.since)} on`) : h("span.badge.backward", found.differs ? `differs from the log at step ${count(found.differs)}` : "this step is not in the log"), asPython(() => python)),
      h("div.facts", fact("loss", "loss", found.loss), fact("gradient norm", "norm", found.norm), fact("learning rate", "lr", found.lr)),
      found.findings.length ? findingList(found.findings) : null,
      h("h3", `The batch: ${found.rows} rows`), h("div.batch", found.texts.map((row) => h("blockquote.sample", Object.entries(row).map(([key, text]) => h("div", Object.keys(row).length > 1 && h("span.small.soft", `${key}: `), text))))),
      h("h3", "What went through it"), h("div.scroll.tall", { tabindex: "0", role: "region", "aria-label": "Layers of the step" }, h("table.plain.nowrap", h("thead", h("tr", h("th", "layer"), h("th", "values"), h("th.num", "std"), h("th", "gradients"), h("th.num", "std"), h("th.num.wide", "flat"))),
        h("tbody", found.layers.map((layer) => h("tr", { data: { layer: layer.name } }, h("td.mono.small", layer.name), h("td", bars(layer.value.histogram, "")), h("td.num", { data: { value: String(layer.value.std) } }, number(layer.value.std, 3)), h("td", layer.grad && bars(layer.grad.histogram, "back")), h("td.num", number(layer.grad?.std, 3)), h("td.num.wide", layer.flat === null ? "" : `${number(100 * layer.flat, 2)} %`)))))),
      h("h3", "How each parameter moved"), h("div.scroll.tall", { tabindex: "0", role: "region", "aria-label": "Parameters of the step" }, h("table.plain.nowrap", h("thead", h("tr", h("th", "parameter"), h("th.num.wide", "‖weights‖"), h("th.num", "‖gradient‖"), h("th.num", "update / weights"))),
        h("tbody", found.parameters.map((each) => h("tr", { data: { parameter: each.name } }, h("td.mono.small", each.name), h("td.num.wide", number(each.weight_norm)), h("td.num.backward", { data: { value: String(each.grad_norm) } }, number(each.grad_norm)), h("td.num", number(each.update_ratio, 3))))))),
      h("label.field.live", "Any array of the step", h("select", { "aria-label": "Array", onchange: (event) => show(event.target.value) }, h("option", { value: "" }, "choose one"), names.map((each) => h("option", { value: each }, `${each} (${found.arrays[each].join(", ")})`)))), values);
  }

  if (params.has("replay")) play();
  return h("section.card.stack", h("h2", "A step again"), h("p.soft", "Nothing of a step is kept, but it depends on the weights, the optimizer and its number alone: the nearest checkpoint before it gives every step again, to the last bit."),
    h("div.row.live", h("label.field", "Step", field), h("button", { type: "button", onclick: play }, "Replay it")), body);
}
