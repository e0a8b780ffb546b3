// The shell: navigation, theme, and a router with an address for every view.

import { recorded } from "./lib/api.js";
import { h, replace } from "./lib/dom.js";
import { problem, toast, work } from "./lib/parts.js";

const VIEWS = [
  { path: "/", name: "Home", file: "./views/home.js", exact: true },
  { path: "/lessons", name: "Lessons", file: "./views/lessons/index.js" },
  { path: "/calculus", name: "Calculus", file: "./views/calculus.js" },
  { path: "/tokens", name: "Tokens", file: "./views/tokens.js" },
  { path: "/ngrams", name: "n-grams", file: "./views/lab/ngrams.js" },
  { path: "/embeddings", name: "Embeddings", file: "./views/lab/embeddings.js" },
  { path: "/runs", name: "Runs", file: "./views/runs.js" },
  { path: "/microscope", name: "Microscope", file: "./views/microscope.js" },
  { path: "/playground", name: "Playground", file: "./views/playground.js" },
  { path: "/diagnostics", name: "Diagnostics", file: "./views/lab/diagnostics.js" },
  { path: "/alignment", name: "Alignment", file: "./views/lab/alignment.js" },
  { path: "/scaling", name: "Scaling", file: "./views/lab/scaling.js" },
];
const main = document.getElementById("main");
const here = () => recorded ?? location; // the address of what is shown
let leave = null;
let visit = new AbortController(); // of the view that is shown
let address = ""; // of the same, without the place in the page

function drawNav(current) {
  replace(document.getElementById("nav"), VIEWS.map((view) =>
    h("a", { href: view.path, data: { link: "" }, "aria-current": view === current ? "page" : null }, view.name)));
  const nav = document.getElementById("nav"), now = nav.querySelector("[aria-current]");
  if (now) nav.scrollLeft = now.offsetLeft - nav.offsetLeft - (nav.clientWidth - now.clientWidth) / 2;
}

/** The view that an address leads to. */
export function view(path) {
  return VIEWS.find((each) => path === each.path || (!each.exact && path.startsWith(`${each.path}/`)));
}

export const moduleOf = (found) => import(found.file);

export async function show() {
  visit.abort();
  visit = new AbortController();
  const { signal } = visit;
  leave?.();
  leave = null;
  const { pathname, search } = here(), found = view(pathname);
  address = location.pathname + location.search;
  drawNav(found);
  if (!found) {
    document.title = "Not found · Chainrule Studio";
    replace(main, h("div.card.empty", h("h1", "There is no such page"), h("p", `${pathname} is no view of the Studio.`),
      h("a.button.main", { href: "/", data: { link: "" } }, "Home")));
    return;
  }
  try {
    const module = await moduleOf(found);
    if (signal.aborted) return;
    const place = h("div.view");
    replace(main, place);
    const below = pathname.slice(found.path.length).replace(/^\//, "");
    document.title = `${found.name} · Chainrule Studio`;
    const left = await module.render(place, { below, params: new URLSearchParams(search), ...during(signal) });
    if (signal.aborted) {
      left?.();
      return;
    }
    leave = left ?? null;
    if (recorded) frozen(place);
  } catch (error) {
    if (!signal.aborted) replace(main, h("h1", found.name), problem(error), h("div.row", h("a.button.main", { href: found.path, data: { link: "" } }, `Back to ${found.name}`),
      h("a.button", { href: "/", data: { link: "" } }, "Home")));
  }
}

/** What a view may do until it is left: change the address, and compute. */
function during(signal) {
  const remember = (search) => {
    if (recorded || signal.aborted) return;
    const text = search.toString();
    address = location.pathname + (text ? `?${text}` : "");
    history.replaceState(null, "", address);
  };
  return { signal, remember, work: (place, action, options) => work(place, action, { ...options, until: signal }) };
}

/** A view out of a file: what would have to be computed cannot be changed. */
function frozen(place) {
  place.prepend(h("p.saved.small.soft", `A view of Chainrule Studio, saved on ${recorded.saved}. Everything it shows is in this file.`));
  for (const field of place.querySelectorAll("textarea, input:not([type=checkbox]), select[aria-label=Model]")) field.disabled = true;
}

export function go(path) {
  if (recorded) {
    toast("This file holds one view: open the Studio for the others");
    return;
  }
  history.pushState(null, "", path);
  scrollTo(0, 0);
  show().then(() => { if (!main.contains(document.activeElement)) main.focus({ preventScroll: true }); });
}


document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-link]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
addEventListener("popstate", () => {
  if (location.pathname + location.search !== address) show(); // a link to a place in this page is the browser's
});

const themes = ["auto", "light", "dark"];
const button = document.getElementById("theme");

function drawTheme() {
  const now = document.documentElement.dataset.choice;
  button.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[now];
  button.setAttribute("aria-label", `Theme: ${now}. Change`);
}

button.addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.choice) + 1) % themes.length];
  localStorage.setItem("theme", next);
  applyTheme();
  drawTheme();
});

if (recorded) document.documentElement.dataset.recorded = ""; // what would have to compute is not shown
drawTheme();
show();
