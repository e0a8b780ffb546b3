// A text token by token, and what else could have stood at the chosen one: before and after temperature and cuts.

import { recorded } from "../../lib/api.js";
import { count, h, number, replace } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";

export const speed = (found) => found.speed !== null && h("span.badge", { data: { speed: String(found.speed) }, title: "after the first token" }, `${number(found.speed, 3)} tokens/s`);

export function strip(tokens, at, pick, label = "Tokens of the text") {
  return h("div.written", { role: "listbox", tabindex: "0", "aria-label": label, onkeydown: (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    pick(Math.max(0, Math.min(tokens.length - 1, to)), true);
  } }, tokens.map((token, i) => h("span", { role: "option", "aria-selected": i === at ? "true" : "false", class: `wtoken${token.given ? " given" : ""}`, css: { "--weight": `${token.p === null ? 0 : Math.round(60 * (1 - token.p))}%` }, data: { id: String(token.id), p: String(token.p) },
    title: token.p === null ? "the first token" : `${number(100 * token.p, 3)} %`, onclick: () => pick(i) }, token.piece === "\n" ? "⏎\n" : token.piece)));
}

/** The alternatives at a token; `branch(id)` goes on from another one, where that is possible. */
export function alternatives(token, branch) {
  if (!token.top.length) return h("p.soft", "Nothing comes before the first token: choose another one.");
  const cut = token.top.some((each) => each.after !== undefined);
  return [h("p.soft", "At ", h("code", visible(token.piece)), ` the model expected these.${branch ? " Choose one to go on from there." : ""}`),
    cut && h("p.small.soft", "The bar is the model’s own probability; the second number is what it was drawn with, after temperature and cuts."),
    h("div.bars", token.top.map((each) => h(branch ? "button" : "div", { ...(branch ? { type: "button", disabled: Boolean(recorded), onclick: () => branch(each.id) } : {}), class: `chance${each.id === token.id ? " right" : ""}${cut ? " two" : ""}`, data: { id: String(each.id), p: String(each.p), after: String(each.after ?? "") } }, h("code", visible(each.piece)),
      h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`), cut && h("span.num.soft", each.after ? `${number(100 * each.after, 3)} %` : "cut"))))];
}

export function drawText(found, { state, branch, begin }) {
  const root = h("div.grid2.uneven"), side = h("section.card.stack"), text = h("div");
  let at = Math.min(found.prompt, found.tokens.length - 1);
  const pick = (to, focus) => { at = to; draw(); if (focus) text.querySelector(".written").focus(); };
  function draw() {
    replace(text, strip(found.tokens, at, pick));
    replace(side, h("h2", "What else"), alternatives(found.tokens[at], state.messages ? null : (id) => branch([...found.tokens.slice(0, at).map((each) => each.id), id])));
  }
  draw();
  const made = found.tokens.length - found.prompt;
  return replace(root, h("section.card.stack", h("div.row.between", h("h2", "The text"), h("div.row", state.ids && h("button.quiet", { onclick: begin }, "Back to the prompt"), h("span.badge", `${count(made)} new tokens`), speed(found), found.full && h("span.badge.backward", "context is full"))),
    h("p.small.soft", "The stronger the color, the less likely the token was."), text), side);
}
