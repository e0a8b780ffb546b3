// Where a prediction comes from: the gradient of its logit on the input, and what each part of the model adds to it.

import { h, number, replace } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";
import { asPython, work } from "../../lib/parts.js";
import { explained, rowAt } from "./outputs.js";
import { ask as plainAsk, recorded } from "../../lib/api.js";

const SHOWN = 14; // parts, the largest first

/** Tokens, blue where a number is positive and orange where it is negative. */
export function signed(pieces, scores, label) {
  const most = Math.max(...scores.map(Math.abs), 1e-12);
  return h("div.tokens", { role: "list", "aria-label": label }, pieces.map((piece, i) => h("span", { role: "listitem", class: `token${scores[i] > 0 ? " look" : ""}`, css: { "--weight": `${Math.round((70 * Math.abs(scores[i])) / most)}%` }, data: { score: String(scores[i]) }, title: number(scores[i]) }, visible(piece))));
}

function terms(list) {
  const most = Math.max(...list.map((term) => Math.abs(term.value)), 1e-12);
  const shown = [...list].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, SHOWN);
  return h("div.bars.wide", shown.map((term) => {
    const best = term.heads.length ? term.heads.reduce((a, x, i) => (Math.abs(x) > Math.abs(term.heads[a]) ? i : a), 0) : null;
    return h("div.chance.term", { data: { term: term.name, value: String(term.value) } }, h("code", term.name), h("span.rail", h("span", { class: term.value < 0 ? "down" : "", css: { width: `${(100 * Math.abs(term.value)) / most}%` } })), h("span.num", number(term.value, 3)),
      best === null ? null : h("span.small.soft", `most by head ${best}: ${number(term.heads[best], 3)}`));
  }));
}

export async function causesCard({ state, seen, given, listeners, fresh, signal, ask }) {
  const body = h("div.stack");
  let python = "", turn = 0, stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  async function draw(how) {
    const mine = ++turn, token = state.token ?? rowAt(seen, state.at)[0].id;
    if (seen.kind === "vector" && !state.other) {
      replace(body, h("p.soft", "Write another text above: then you see which tokens make the two alike."));
      return;
    }
    const found = await how(`/api/microscope/causes?${given({ token, at: state.at, other: seen.kind === "vector" ? state.other : null })}`, { signal: stop.signal });
    if (!fresh() || mine !== turn) return;
    python = found.python;
    const { text, source } = found.gradient;
    replace(body, h("p", explained(found, seen, state.at), state.edits.length ? ", without your changes." : "."),
      source && [h("h3", "The source"), signed(seen.source, source, "Gradient times input of the source")],
      text && [h("h3", source ? "The target so far" : "Which tokens it hangs on"), h("p.small.soft", "Gradient × input: by how much it would change if the embedding of a token were scaled. Blue raises it, orange lowers it."), signed(seen.pieces, text, "Gradient times input")],
      found.terms && [h("h3", "Which parts add to it"), h("p.small.soft", "What each part wrote into the residual stream, read in the direction of this logit. The terms sum to the logit."), terms(found.terms)],
      !text && !found.terms && h("p.soft", "This family looks its tokens up by windows: there is no stream to take apart."));
  }
  const again = () => { stop.abort(); stop = new AbortController(); return refresh(); };
  const refresh = (mine = turn + 1) => work(body, async ({ onjob }) => { await draw((path, options) => plainAsk(path, { ...options, onjob })); }, { keep: true, quiet: () => !fresh() || mine !== turn });
  if (!recorded) listeners.add(again);
  await draw(ask);
  return h("section.card.stack", h("div.row.between", h("h2", "Where it comes from"), asPython(() => python)), body);
}
