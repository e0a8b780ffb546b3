// Gaps of a text with the tokens that may stand there.

import { h, number } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";

export function drawGaps(found) {
  return h("div.stack-large", h("section.card.stack", h("h2", "Filled"), h("p.written", { data: { filled: "" } }, found.text)),
    h("div.grid3", found.gaps.map((gap, i) => h("section.card.stack", { data: { gap: String(i) } }, h("h2", `Gap ${i + 1}`), h("div.bars", gap.map((each) => h("div.chance", { data: { id: String(each.id), p: String(each.p) } }, h("code", visible(each.piece)), h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`))))))),
    h("p.small.soft", "Each gap is guessed with the others open."));
}
