// Before the first paint, so that a dark page does not flash white. Only the choice is kept, in this browser.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
