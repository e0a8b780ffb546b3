// Two models side by side on one text: another checkpoint of the run, or another run.

import { ask as plainAsk } from "../../lib/api.js";
import { count, h, number, replace } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";
import { asPython } from "../../lib/parts.js";

export async function sidesCard({ models, state, seen, given, keep, fresh, signal, work }) {
  const body = h("div.stack"), own = models.find((each) => each.name === state.run);
  const ordered = [own, ...models.filter((each) => each !== own)].filter(Boolean);
  const choices = ordered.flatMap((each) => [...each.steps.map((step) => ({ run: each.name, step })), { run: each.name, step: null }]).filter((each) => each.run !== state.run || each.step !== state.step);
  if (!choices.length) return [];
  let python = "";
  const load = () => work(body, async ({ onjob }) => {
    if (state.against === null) return h("p.soft", "Choose another checkpoint or model: both read the text above, without your changes.");
    const found = await plainAsk(`/api/microscope/compare?${given({ against: state.against, against_step: state.against_step, edits: null })}`, { onjob, signal });
    if (!fresh()) return undefined;
    python = found.python;
    const [a, b] = found.sides;
    const guess = (each) => [h("code", visible(each.piece)), h("span.small.soft", ` ${number(100 * each.p, 2)} %`)];
    return h("div.stack", h("div.facts", h("div.fact", h("span.small.soft", "mean loss here"), h("b.forward", { data: { mean: "0", value: String(a.mean) } }, number(a.mean))), h("div.fact", h("span.small.soft", "mean loss there"), h("b.backward", { data: { mean: "1", value: String(b.mean) } }, number(b.mean)))),
      found.moved.length ? h("p", "Heads whose maps differ most: ", found.moved.slice(0, 4).map((each, i) => [i ? ", " : "", h("span", { data: { moved: `${each.block}:${each.head}`, value: String(each.distance) } }, h("code", `${each.block} head ${each.head}`), ` (${number(each.distance, 2)})`)])) : null,
      h("div.scroll.tall", { tabindex: "0", role: "region", "aria-label": "Both models at every token" }, h("table.plain", h("thead", h("tr", h("th", "token"), h("th", "expected here"), h("th", "expected there"), h("th.num.wide", "loss here"), h("th.num.wide", "loss there"), h("th.num", "KL"))),
        h("tbody", seen.pieces.map((piece, i) => h("tr", { data: { position: String(i) } }, h("td", h("code", visible(piece))), h("td", guess(a.top[i])), h("td", guess(b.top[i])), h("td.num.wide", number(a.loss[i])), h("td.num.wide", number(b.loss[i])), h("td.num", { data: { kl: String(found.kl[i]) } }, number(found.kl[i], 3))))))),
      h("div.row", asPython(() => python)));
  }, { quiet: () => !fresh() });
  const name = (each) => `${each.run}${each.step === null ? " (in use)" : ` step ${count(each.step)}`}`;
  const select = h("select", { "aria-label": "Compare with", onchange: (event) => { const found = choices[Number(event.target.value)]; state.against = found?.run ?? null; state.against_step = found?.step ?? null; keep(); load(); } },
    h("option", { value: "" }, "none"), choices.map((each, i) => h("option", { value: String(i), selected: each.run === state.against && each.step === state.against_step }, name(each))));
  load();
  return h("section.card.stack", h("div.row.between", h("h2", "Side by side"), h("label.inline.small.soft.live", "with ", select)), body);
}
