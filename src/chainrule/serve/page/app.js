import { models, stream } from "./client.js";
import { build, values } from "./controls.js";
import { chatPieces, completionPieces } from "./pieces.js";
import { append, hideTip } from "./tokens.js";

const $ = (id) => document.getElementById(id);
const TOP = 5; // tokens shown in place of each
let talk = [];
let running = null;

function said(text, bad = false) {
  $("status").textContent = text;
  $("status").className = bad ? "error" : "";
}

function element(name, className, text = "") {
  const found = document.createElement(name);
  found.className = className;
  found.textContent = text;
  return found;
}

// Run one request and show it in `parent`; returns its text.
async function run(form, path, body, parent, cut) {
  const began = performance.now();
  const [send, stop] = [form.querySelector("[data-send]"), form.querySelector("[data-stop]")];
  let text = "", tokens = 0, first = 0;
  running = new AbortController();
  send.disabled = true;
  stop.hidden = false;
  said("waiting …");
  try {
    for await (const event of stream(path, body, running.signal)) {
      for (const piece of event.choices.flatMap(cut)) {
        first ||= performance.now();
        text += piece.text;
        append(parent, piece);
      }
      if (event.usage) tokens = event.usage.completion_tokens;
    }
    const speed = tokens > 1 ? `, ${((1000 * (tokens - 1)) / (performance.now() - first)).toFixed(1)} per second` : "";
    said(`${tokens} tokens${speed}; the first after ${((first - began) / 1000).toFixed(2)} s`);
  } catch (error) {
    if (error.name === "AbortError") said("stopped");
    else { parent.append(element("p", "error", error.message)); said(error.message, true); }
  } finally {
    running = null;
    send.disabled = false;
    stop.hidden = true;
  }
  return text;
}

async function chat(event) {
  event.preventDefault();
  const options = values();
  const message = $("message").value.trim();
  if (running || !message || !options) return;
  if (!talk.length) $("turns").replaceChildren();
  $("message").value = "";
  talk.push({ role: "user", content: message });
  $("turns").append(element("div", "turn user", message));
  const turn = element("div", "turn assistant");
  $("turns").append(turn);
  turn.scrollIntoView({ block: "end" });
  const body = { model: $("model").value, messages: talk, logprobs: true, top_logprobs: TOP, ...options };
  const mine = talk;
  const text = await run($("chat-form"), "/v1/chat/completions", body, turn, chatPieces());
  if (mine === talk) talk.push({ role: "assistant", content: text });
}

async function complete(event) {
  event.preventDefault();
  const options = values();
  if (running || !options) return;
  const prompt = $("prompt").value;
  $("completion").replaceChildren(element("span", "prompt", prompt));
  const body = { model: $("model").value, prompt, logprobs: TOP, ...options };
  await run($("complete-form"), "/v1/completions", body, $("completion"), completionPieces(prompt));
}

function clear() {
  running?.abort();
  talk = [];
  $("turns").replaceChildren(element("p", "empty", "Say something to the model."));
  said("");
}

function choose(name) {
  for (const each of ["chat", "complete"]) {
    const tab = $(`tab-${each}`);
    tab.setAttribute("aria-selected", each === name);
    tab.tabIndex = each === name ? 0 : -1;
    $(`panel-${each}`).hidden = each !== name;
  }
  hideTip();
}

function submitOnEnter(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
}

async function start() {
  build($("fields"));
  $("controls").open = window.innerWidth > 768;
  $("chat-form").addEventListener("submit", chat);
  $("complete-form").addEventListener("submit", complete);
  $("message").addEventListener("keydown", submitOnEnter);
  $("clear").addEventListener("click", clear);
  for (const stop of document.querySelectorAll("[data-stop]")) stop.addEventListener("click", () => running?.abort());
  for (const name of ["chat", "complete"]) {
    $(`tab-${name}`).addEventListener("click", () => choose(name));
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
        const other = name === "chat" ? "complete" : "chat";
        choose(other);
        $(`tab-${other}`).focus();
      }
    });
  }
  try {
    const found = (await models()).filter((model) => model.writes);
    $("model").replaceChildren(...found.map((model) => new Option(model.id)));
    $("model").addEventListener("change", clear);
    choose(found[0]?.chat_template ? "chat" : "complete");
    if (!found.length) said("No model that writes is served here.", true);
  } catch (error) {
    said(error.message, true);
  }
}

start();
