// Tokens: one text in the pieces of every tokenizer, BPE merge by merge, and the loss mask of a conversation.

import { ask, query } from "../lib/api.js";
import { count, debounce, h, number, prose, replace } from "../lib/dom.js";
import { asPython, heading, permalink } from "../lib/parts.js";

function tabs(current) {
  const tab = (name, href) => h("a.chip", { href, data: { link: "" }, "aria-current": current === name ? "page" : null }, name);
  return h("nav.row", { "aria-label": "Tokens" }, tab("Pieces", "/tokens"), tab("Merges step by step", "/tokens/merges"), tab("Loss mask", "/tokens/mask"));
}

export function render(place, visit) {
  const { below } = visit;
  if (below === "") return renderPieces(place, visit);
  if (below === "merges") return renderMerges(place, visit);
  if (below === "mask") return renderMask(place, visit);
  throw new Error(`/tokens/${below}: there is no such page (the views are /tokens, /tokens/merges and /tokens/mask)`);
}

const visible = (piece) => piece.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");

function pieceRow(found) {
  return h("div.pieces", { role: "list", "aria-label": `Pieces of ${found.name}` }, found.pieces.map((piece, i) =>
    h("span", { class: `piece t${i % 5}`, role: "listitem", title: `id ${found.ids[i]}`, data: { id: String(found.ids[i]), piece } }, visible(piece))));
}

async function renderPieces(place, { params, remember, work }) {
  const about = await ask("/api/tokens/about");
  let text = params.get("text") ?? about.example, size = Number(params.get("size") ?? 1000), program = "";
  const results = h("div.stack-large");
  const load = () => {
    remember(new URLSearchParams({ text, size }));
    return work(results, async ({ onjob, signal }) => {
      const found = await ask(`/api/tokens/pieces?${query({ text, size })}`, { onjob, signal });
      program = found.python;
      return draw(found);
    }, { keep: results.childElementCount > 0 });
  };
  const later = debounce(200, load);
  const label = h("b.mono", count(size));
  replace(place,
    heading("Tokens", "A model reads pieces, not letters. The same text in the pieces of every tokenizer:", permalink(), asPython(() => program)),
    tabs("Pieces"),
    h("div.card.stack",
      h("label.field", "Text", h("textarea", { rows: "3", value: text, oninput: (event) => { text = event.target.value; later(); } })),
      h("label.field.range", h("span", "Vocabulary of the learned ones: ", label, " tokens"),
        h("input", { type: "range", min: String(about.sizes[0]), max: String(about.sizes[1]), step: "100", value: String(size), "aria-label": "Size of the vocabulary",
          oninput: (event) => { size = Number(event.target.value); label.textContent = count(size); later(); } })),
      h("p.small.soft", `All are learned here and now from the corpus ${about.corpus}, the text of Python's own help.`)),
    results);
  place.classList.add("stack-large");

  function draw(found) {
    const most = Math.max(...found.tokenizers.map((each) => each.ids.length));
    return found.tokenizers.map((each) => h("section.card.stack.tokenizer", { data: { tokenizer: each.name } },
      h("div.row.between", h("div", h("h2", each.name), h("span.soft.small", each.about)),
        h("div.row", h("span.badge", `${count(each.size)} known`),
          each.error ? h("span.badge.bad", "cannot") : [h("span.badge.forward", `${each.ids.length} tokens`), each.per_token && h("span.badge", `${number(each.per_token, 3)} characters each`),
            each.lossless ? h("span.badge.good", "✓ comes back whole") : h("span.badge.backward", { title: `comes back as: ${each.decoded}` }, "loses something")])),
      each.error ? h("p.soft", prose(each.error)) : [pieceRow(each), h("div.meter", { "aria-hidden": "true" }, h("span", { css: { width: `${(100 * each.ids.length) / Math.max(most, 1)}%` } })),
        !each.lossless && h("p.small.soft", "It comes back as: ", h("code", each.decoded))]));
  }
  await load();
}

async function renderMerges(place, { params, remember, work }) {
  let text = params.get("text") ?? "low low low low low lower lower newest newest newest newest newest newest widest widest widest";
  let step = params.has("step") ? Number(params.get("step")) : 0, found = null;
  const words = h("div.words"), controls = h("div.row.controls"), said = h("p.said", { "aria-live": "polite" }), list = h("div.scroll"), result = h("div.stack");
  const board = h("div.stack", { tabindex: "0", role: "group", "aria-label": "Merges. Arrow keys step.", onkeydown: (event) => {
    const to = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: found?.steps.length }[event.key];
    if (to === undefined || !found) return;
    event.preventDefault();
    move(to);
  } }, controls, said, words);
  const load = () => work(result, async ({ onjob, signal }) => {
    found = await ask(`/api/tokens/merges?${query({ text })}`, { onjob, signal });
    step = Math.min(step, found.steps.length);
    show();
    return [h("div.card", board), h("div.card.stack", h("h2", "All merges"), h("p.soft", "Choose one to go there."), list)];
  }, { keep: result.childElementCount > 0 });
  const later = debounce(250, () => { step = 0; load(); });
  replace(place, heading("Merges", "Byte pair encoding begins with letters and merges the most frequent pair of neighbors, again and again. Each merge becomes a token.", permalink(), asPython(() => found?.python ?? "")),
    tabs("Merges step by step"),
    h("div.card.stack", h("label.field", "Words to learn from; repeat a word to make it frequent", h("textarea", { rows: "2", value: text, oninput: (event) => { text = event.target.value; later(); } }))),
    result);
  place.classList.add("stack-large");

  function move(to) {
    step = Math.max(0, Math.min(found.steps.length, to));
    show();
  }

  function show() {
    remember(new URLSearchParams({ text, step }));
    const total = found.steps.length, now = step ? found.steps[step - 1] : null, next = found.steps[step];
    const button = (name, label, to, off) => h("button", { type: "button", "aria-label": label, disabled: off, onclick: () => move(to) }, name);
    replace(controls, button("Start", "To the start", 0, !step), button("← Back", "One merge back", step - 1, !step),
      button("Merge →", "The next merge", step + 1, step === total), button("End", "To the end", total, step === total),
      h("span.badge.forward", `merge ${step} of ${total}`), h("span.badge", `${now ? now.vocabulary : found.alphabet} tokens`));
    replace(said, now ? [h("code", visible(now.pair[0])), " + ", h("code", visible(now.pair[1])), ` were neighbors ${now.count} times, more than any other pair: they become `, h("b.mono", visible(now.pair.join(""))), ". "] : "Every word in its letters. ",
      next ? "" : "Every word is one token now: nothing is left to merge.");
    const merged = now?.pair.join("");
    replace(words, (now ? now.words : found.start).map((word, i) => h("div.word", word.map((piece) => h("span", { class: `piece${piece === merged ? " fresh" : ""}`, data: { piece } }, visible(piece))), h("span.faint.small", `× ${found.counts[i]}`))));
    replace(list, h("table.plain", h("thead", h("tr", h("th", "#"), h("th", "pair"), h("th.num", "count"), h("th", "new token"))),
      h("tbody", found.steps.map((each, i) => h("tr", { class: i === step - 1 ? "current" : "", data: { merge: each.pair.join("") } }, h("td", h("button.quiet.tight", { onclick: () => move(i + 1), "aria-label": `Go to merge ${i + 1}` }, i + 1)),
        h("td.mono", visible(each.pair[0]), " + ", visible(each.pair[1])), h("td.num", each.count), h("td.mono", visible(each.pair.join(""))))))));
  }
  await load();
}

async function renderMask(place, { params, remember, work }) {
  const about = await ask("/api/tokens/about");
  const state = { text: params.get("text") ?? about.talk, size: Number(params.get("size") ?? 1000), window: params.get("window") ? Number(params.get("window")) : null };
  let found = null;
  const result = h("div.stack-large");
  const load = () => {
    remember(new URLSearchParams(query(state)));
    return work(result, async ({ onjob, signal }) => {
      found = await ask(`/api/tokens/mask?${query(state)}`, { onjob, signal });
      return draw();
    }, { keep: result.childElementCount > 0 });
  };
  const later = debounce(250, load);
  replace(place, heading("Loss mask", "In a conversation everything is read, and only the answers are learned. Which token is which, as a training sees it:", permalink(), asPython(() => found?.python ?? "")),
    tabs("Loss mask"),
    h("div.card.stack", h("label.field", "Conversation: lines that begin with system:, user: or assistant:", h("textarea.mono", { rows: "6", value: state.text, spellcheck: "false", oninput: (event) => { state.text = event.target.value; later(); } })),
      h("label.field.short", "Window in tokens (empty: long enough)", h("input.mono", { value: state.window ?? "", inputmode: "numeric", size: "8", oninput: (event) => { state.window = Number(event.target.value) || null; later(); } }))),
    result);
  place.classList.add("stack-large");

  const kind = (token) => (token.trained ? "learned" : token.reason.startsWith("cut") || token.reason.startsWith("dropped") ? "lost" : token.reason === "given" ? "given" : "frame");
  function draw() {
    const legend = [["learned", "learned: an answer, and the mark that ends it"], ["given", "given: only read"], ["frame", "mark of the format"], ...(found.lost ? [["lost", "lost: beyond the window"]] : [])];
    return [h("section.card.stack", h("div.row", h("span.badge.forward", { data: { trained: String(found.trained) } }, `${found.trained} of ${found.tokens.length} tokens are learned`), found.lost > 0 && h("span.badge.bad", `${found.lost} are lost`), h("span.badge", `window of ${found.window}`)),
      h("div.pieces.masked", { role: "list", "aria-label": "Tokens of the conversation" }, found.tokens.map((token) => h("span", { class: `piece ${kind(token)}`, role: "listitem", title: `id ${token.id}: ${token.reason}`, data: { id: String(token.id), learned: String(token.trained) } }, visible(token.text)))),
      h("div.legend.key", legend.map(([name, text]) => h("span", h("span", { class: `piece ${name}`, "aria-hidden": "true" }, "a"), ` ${text}`)))),
    h("section.card.stack", h("h2", "What is learned"), h("pre.sample", { tabindex: "0" }, found.text))];
  }
  await load();
}
