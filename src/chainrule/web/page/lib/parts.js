// Parts that every view shares: copying, errors, empty states, progress.

import { Canceled, recorded } from "./api.js";
import { h, number, replace } from "./dom.js";

let fading = 0;

export function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.classList.add("on");
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove("on"), 2200);
}

export async function copy(text, said = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    toast("The browser does not allow copying: select the text instead");
  }
}

/** A button that shows the program behind a view, to be read or copied. */
export function asPython(program) {
  const open = () => {
    const box = h("dialog", { "aria-label": "This view as Python" },
      h("div.stack",
        h("div.row.between", h("h2", "The same in Python"), h("button.quiet", { onclick: () => box.close(), "aria-label": "Close" }, "Close")),
        h("p.soft", "This program computes the numbers of this view."),
        h("pre.code", { tabindex: "0" }, h("code", program())),
        h("div.row", h("button.main", { onclick: () => copy(program(), "Program copied") }, "Copy"))));
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  };
  return h("button.python", { type: "button", onclick: open }, "Copy as Python");
}

/** Buttons that copy the address of exactly this view, and save it as one file that opens anywhere; `lost()` says what of it an address does not hold. */
export function permalink(lost = () => "") {
  if (recorded) return [];
  const unless = (act) => (event) => (lost() ? toast(lost()) : act(event));
  const keep = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await (await import("./export.js")).saveView();
    } catch (error) {
      toast(error.message);
    }
    button.disabled = false;
  };
  return [h("button.quiet", { type: "button", onclick: unless(() => copy(location.href, "Link copied")) }, "Copy link"), h("button.quiet", { type: "button", onclick: unless(keep) }, "Save as a file")];
}

export const problem = (error) => h("div.error", { role: "alert" }, error.message ?? String(error));

export function empty(title, text, ...actions) {
  return h("div.card.empty", h("h2", title), h("p", text), h("div.row", { css: { "justify-content": "center" } }, ...actions));
}

const latest = new WeakMap(); // of each place, what stops the work that was begun there last

/** Stop what is being computed for `place`, and empty it. */
export function halt(place) {
  latest.get(place)?.abort();
  replace(place);
}

/** Show `place` busy while `action({ onjob, signal })` runs, then what it returns; errors in words, unless it is to be `quiet`.
 *
 * The last question wins: newer work at the same place stops this one, and so does `until`, the signal of its view. */
export async function work(place, action, { keep = false, quiet = () => false, until } = {}) {
  if (until?.aborted) return false;
  latest.get(place)?.abort();
  const mine = new AbortController(), { signal } = mine, stale = () => signal.aborted || quiet();
  latest.set(place, mine);
  until?.addEventListener("abort", () => mine.abort(), { once: true, signal });
  place.setAttribute("aria-busy", "true");
  if (!keep) replace(place, h("div.loading", "…"));
  const bar = h("div.progress", { role: "status" });
  signal.addEventListener("abort", () => bar.remove());
  const onjob = (job, cancel) => {
    const meter = h("progress", { max: "1", "aria-label": "Progress" });
    if (job.fraction !== null) meter.value = job.fraction;
    replace(bar, h("span", job.said), meter, h("button.quiet", { onclick: cancel }, "Cancel"));
    if (!bar.isConnected) keep ? place.prepend(bar) : replace(place, bar);
  };
  try {
    const made = await action({ onjob, signal });
    bar.remove();
    if (made !== undefined && !stale()) replace(place, made);
    return true;
  } catch (error) {
    bar.remove();
    if (stale()) return false;
    if (error instanceof Canceled) replace(place, h("p.soft", "Canceled. Change something to start again."));
    else replace(place, problem(error));
    return false;
  } finally {
    if (latest.get(place) === mine) place.removeAttribute("aria-busy");
  }
}

export function heading(title, lead, ...actions) {
  return h("div", h("div.row.between", h("h1", title), h("div.row", ...actions)), lead && h("p.lead", lead));
}

/** Large numbers in a row: [name, value, digits, key]. */
export const facts = (list) => h("div.facts", list.map(([name, value, digits, key]) => h("div.fact", { data: { fact: key, value: String(value) } }, h("b", value === Infinity ? "∞" : number(value, digits)), h("span.small.soft", name))));
