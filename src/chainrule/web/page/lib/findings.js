// What the doctor says: measured, meaning, what to try.

import { h, prose } from "./dom.js";

const SIGNS = { ok: ["good", "✓"], note: ["", "i"], problem: ["bad", "!"] };

export function findingList(findings) {
  return h("ul.findings", findings.map((finding) => {
    const [tone, sign] = SIGNS[finding.level] ?? SIGNS.note;
    return h("li", { data: { code: finding.code ?? "", level: finding.level } }, h("span", { class: `sign ${tone}`, "aria-label": finding.level }, sign),
      h("div", h("b", finding.about, finding.step ? h("span.faint.small", ` step ${finding.step}`) : null), h("div", prose(finding.measured)), h("div.soft", prose(finding.meaning)),
        finding.advice && h("div.try", h("b", "Try: "), prose(finding.advice))));
  }));
}
