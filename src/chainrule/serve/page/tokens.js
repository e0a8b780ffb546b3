// Tokens as text, each with what else was likely in its place. Text of a model is only ever set as text.

const tip = document.getElementById("tip");
const UNLIKELY = [0.5, 0.1]; // below: a light mark, a strong mark

function element({ text, token, logprob, top }) {
  const span = document.createElement("span");
  const p = Math.exp(logprob);
  span.className = "token";
  span.textContent = text;
  span.tabIndex = -1;
  span.dataset.heat = p < UNLIKELY[1] ? 2 : p < UNLIKELY[0] ? 1 : 0;
  const show = () => showTip(span, token, logprob, top);
  span.addEventListener("mouseenter", show);
  span.addEventListener("focus", show);
  span.addEventListener("click", () => span.focus());
  span.addEventListener("mouseleave", hideTip);
  span.addEventListener("blur", hideTip);
  span.addEventListener("keydown", (event) => {
    const step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
    const other = step && span[step];
    if (other && other.classList.contains("token")) { other.focus(); event.preventDefault(); }
    if (event.key === "Escape") hideTip();
  });
  return span;
}

// Add a piece of a text: a token, or more of the one before. The first token is where the tab key leads.
export function append(parent, piece) {
  const before = parent.querySelector(".token:last-child");
  if (piece.token === undefined) {
    if (before) before.textContent += piece.text;
    else parent.append(piece.text);
    return;
  }
  const span = element(piece);
  if (!before) span.tabIndex = 0;
  parent.append(span);
}

function showTip(span, text, logprob, top) {
  const listed = top.some((other) => other.token === text) ? top : [...top, { token: text, logprob }];
  tip.replaceChildren(...listed.map((other) => {
    const line = document.createElement("div");
    line.className = other.token === text ? "chosen" : "";
    line.textContent = `${(100 * Math.exp(other.logprob)).toFixed(1).padStart(5)} %  ${JSON.stringify(other.token)}`;
    return line;
  }));
  tip.hidden = false;
  const at = span.getClientRects()[0], size = tip.getBoundingClientRect();
  const below = at.bottom + 6 + size.height < window.innerHeight;
  tip.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - size.width - 8))}px`;
  tip.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - size.height - 6)}px`;
}

export function hideTip() { tip.hidden = true; }
