// Home: three ways in.

import { h, replace } from "../lib/dom.js";

const WAYS = [
  { href: "/calculus", glyph: "∂", title: "Start from one number and its gradient",
    text: "Write an expression, step through its graph forward and backward, and see that every gradient is right.", action: "Open the calculus" },
  { href: "/calculus/ops/softmax", glyph: "σ", title: "See an op from formula to code",
    text: "Every operation of a transformer: its equations, the lines that compute them, and a check on numbers that you edit.", action: "Open softmax" },
  { href: "/tokens", glyph: "¶", title: "See what a model reads",
    text: "Your text in the pieces of seven tokenizers, and byte pair encoding merge by merge.", action: "Open the tokens" },
];

export function render(place) {
  replace(place,
    h("div.hero", h("h1", "Look inside."), h("p.lead", "Chainrule is a transformer stack in which every gradient was derived by hand. The Studio shows it: each number beside its formula, its code and its check.")),
    h("div.grid3", WAYS.map((way) => h("a.card.way", { href: way.href, data: { link: "" } },
      h("span.glyph", { "aria-hidden": "true" }, way.glyph), h("h2", way.title), h("p.soft", way.text), h("span.more", way.action, " →")))));
  place.classList.add("stack-large");
}
