// Derivations: blocks of text and MathML. MathML is parsed as XML, and only elements of MathML are taken over.

import { h } from "./dom.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ATTRIBUTES = new Set(["display", "stretchy", "fence", "form", "accent", "columnalign", "columnspacing", "rowspacing", "mathvariant",
  "width", "height", "depth", "minsize", "maxsize", "symmetric", "linethickness", "displaystyle", "scriptlevel", "lspace", "rspace", "movablelimits"]);

function adopt(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE || node.namespaceURI !== MATHML) return document.createTextNode("");
  const made = document.createElementNS(MATHML, node.localName);
  for (const { name, value } of node.attributes) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  for (const child of node.childNodes) made.append(adopt(child));
  return made;
}

export function math(text) {
  const parsed = new DOMParser().parseFromString(text, "application/xml");
  return adopt(parsed.documentElement);
}

export function parts(row) {
  return row.map((part) => {
    if (part.kind === "math") return math(part.math);
    if (part.kind === "link") return h("a", { href: part.href, data: { link: "" } }, part.text);
    return part.kind === "text" ? part.text : h({ code: "code", bold: "strong", em: "em" }[part.kind], part.text);
  });
}

/** A formula with its number; `derived(tag)` may give what happens when the number is pressed. */
export function equation(block, extra = {}, derived = () => null) {
  const attributes = block.tag ? { data: { tag: block.tag }, ...extra } : {};
  return h("div.equation", attributes, h("div.scroll", { tabindex: "-1" }, math(block.math)), block.tag && (derived(block.tag) ? h("button.tag", { type: "button", title: "Show its derivation", onclick: derived(block.tag) }, `[${block.tag}]`) : h("span.tag", `[${block.tag}]`)));
}

export function blocks(list) {
  return list.map((block) => {
    switch (block.kind) {
      case "heading": return h(block.level === 1 ? "h2" : "h3", parts(block.parts));
      case "equation": return equation(block);
      case "code": return h("pre.code", h("code", block.text));
      case "list": return h(block.ordered ? "ol" : "ul", block.items.map((item) => h("li", parts(item))));
      case "table": return h("div.scroll", h("table.plain",
        h("thead", h("tr", block.head.map((cell) => h("th", parts(cell))))),
        h("tbody", block.rows.map((row) => h("tr", row.map((cell) => h("td", parts(cell))))))));
      default: return h("p", parts(block.parts));
    }
  });
}
