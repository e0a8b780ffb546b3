// Calculus: an expression with its graph, the list of ops, and a page for each of them.

import { h } from "../lib/dom.js";
import { render as renderGraph } from "./graph.js";
import { renderList, renderOp } from "./ops.js";

export function tabs(current) {
  const tab = (name, href, more = "") => h("a.chip", { href, data: { link: "" }, "aria-current": current === name ? "page" : null }, name + more);
  return h("nav.row", { "aria-label": "Calculus" }, tab("Expression", "/calculus"), tab("Every op", "/calculus/ops", ", such as softmax"));
}

export function render(place, visit) {
  const { below } = visit, [first, name, ...more] = below.split("/");
  if (first === "") return renderGraph(place, visit, tabs("Expression"));
  if (first === "ops" && !name) return renderList(place, visit, tabs("Every op"));
  if (first === "ops" && !more.length) return renderOp(place, decodeURIComponent(name), visit, tabs("op"));
  throw new Error(`/calculus/${below}: there is no such page (the views are /calculus and /calculus/ops)`);
}
