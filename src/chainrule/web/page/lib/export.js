// The view that is shown as one HTML file: the page, its modules and all answers inside. It opens without a server.

import { show } from "../app.js";
import { answersOf } from "./api.js";
import { save } from "./picture.js";

const PLACE = "RECORDED-ANSWERS";

export async function saveView() {
  const page = await fetch("/api/page");
  if (!page.ok) throw new Error(`the Studio answered ${page.status}`);
  const text = await page.text();
  const answers = await answersOf(show); // from its address alone: the file holds this view, and nothing that was looked at before
  const { pathname, search } = location;
  const recorded = JSON.stringify({ pathname, search, saved: new Date().toISOString().slice(0, 10), answers });
  const name = `chainrule${pathname.replaceAll("/", "-")}`.replace(/-$/, "");
  save(`${name}.html`, new Blob([text.replace(PLACE, () => recorded.replaceAll("<", "\\u003c"))], { type: "text/html" }));
}
