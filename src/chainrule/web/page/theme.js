// Before the first paint, so that a dark page does not flash white. Only the choice is kept, in this browser.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const kept = localStorage.getItem("theme");
  const { dataset } = document.documentElement;
  dataset.choice = kept === "light" || kept === "dark" ? kept : "auto";
  dataset.theme = dataset.choice !== "auto" ? dataset.choice : prefersDark.matches ? "dark" : "light";
  dispatchEvent(new Event("theme"));
}

prefersDark.addEventListener("change", applyTheme);
applyTheme();
