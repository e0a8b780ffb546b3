// Models that predict no tokens: labels of a text, tags of its tokens, a reward, a vector.

import { count, debounce, h, number, replace } from "../../lib/dom.js";
import { visible } from "../../lib/model.js";

const ABOUT = {
  labels: ["What it says of the text", "A classifier reads the whole text and gives each label a probability. Choose one to see which tokens it hangs on."],
  tags: ["What it says of each token", "A tagger gives every token a label. Choose a token to see how sure it is, and a label to see what it hangs on."],
  reward: ["How good it finds the text", "A reward is one number, read where the text ends; only differences mean something. Blue tokens raised it, orange ones lowered it. Choose one to end the text there."],
  bag: ["What it says of the text", "A bag of words counts the words of a text, whatever their order, and adds up what speaks for each label. Choose a label to see which words speak for it, in blue, and against it."],
  words: ["Which words it knows", "Each word has a vector; words that keep the same company have vectors that point the same way. Choose a word to see its neighbors."],
  vector: ["What it makes of the text", "An embedder turns a text into a vector: texts that mean the same point in the same direction."],
  tokens: ["What it expects", "The stronger its color, the more a token surprised the model. Choose one to see what was expected to follow it."],
};

export const about = (seen) => { const [title, text] = ABOUT[seen.predicts ? "tokens" : seen.kind]; return [h("h2", title), h("p.soft", text)]; };

/** The labels that are shown for a position, the likeliest first; of a reward or a vector there are none. */
export const rowAt = (seen, at) => seen.top?.[Math.min(at, seen.top.length - 1)] ?? [{ id: 0 }];

/** How a token is drawn: its weight, the kind of its color, what it says, and a word beside it. */
export function dressed(seen, i, token) {
  if (seen.kind === "bag") {
    const label = token in (seen.adds[0] ?? []) ? token : seen.top[0][0].id, adds = seen.adds.map((row) => row[label]);
    return { weight: (70 * Math.abs(adds[i])) / Math.max(...adds.map(Math.abs), 1e-12), up: adds[i] > 0, title: `adds ${number(adds[i])} to the logit`, data: { adds: String(adds[i]) } };
  }
  if (seen.kind === "words") return { weight: 0, title: seen.places.includes(i) ? "" : "it has no vector", data: seen.places.includes(i) ? {} : { unknown: "" } };
  if (seen.kind === "tags") {
    const [first] = seen.top[i];
    return { weight: 60 * first.p, title: `${first.piece}, ${number(100 * first.p, 3)} %`, word: first.piece, data: { label: first.piece } };
  }
  if (seen.kind === "reward") {
    const steps = seen.rewards.map((x, j) => (j ? x - seen.rewards[j - 1] : 0)); // the level of the first means nothing
    return { weight: (70 * Math.abs(steps[i])) / Math.max(...steps.map(Math.abs), 1e-12), up: steps[i] > 0, title: `reward so far ${number(seen.rewards[i])}`, data: { reward: String(seen.rewards[i]) } };
  }
  return { weight: 0, title: "", data: {} };
}

function labels(seen, at, chosen, onchoose) {
  const row = rowAt(seen, at);
  return [h("p", seen.kind === "tags" ? ["Of ", h("code", visible(seen.pieces[at])), " it says:"] : "Of this text it says:"),
    h("div.bars", row.map((each) => h("button", { type: "button", class: "chance", data: { id: String(each.id), p: String(each.p) }, "aria-pressed": each.id === (chosen ?? row[0].id) ? "true" : "false", title: "Show what this hangs on", onclick: () => onchoose(each.id) },
      h("code", each.piece), h("span.rail", h("span", { css: { width: `${100 * each.p}%` } })), h("span.num", `${number(100 * each.p, 3)} %`))))];
}

function reward(seen, at) {
  const now = seen.rewards[at], before = at ? seen.rewards[at - 1] : null;
  return [h("div.facts", h("div.fact", h("span.small.soft", "reward of the text"), h("b", { data: { fact: "reward", value: String(seen.rewards.at(-1)) } }, number(seen.rewards.at(-1)))),
    h("div.fact", h("span.small.soft", "if it ended at ", h("code", visible(seen.pieces[at]))), h("b.forward", { data: { fact: "so-far", value: String(now) } }, number(now))),
    before !== null && h("div.fact", h("span.small.soft", "changed by this token"), h("b", { class: now < before ? "bad" : "good" }, number(now - before, 3))))];
}

/** What it says: of the text, or at a token. `hear()` is called when something else is to be explained. */
export function drawSaid(place, { seen, state, keep, hear }) {
  if (seen.kind === "words") return replace(place, h("p.small.soft", `${count(seen.vector.words)} words have a vector of ${seen.vector.size} numbers.`));
  if (seen.kind === "reward") return replace(place, reward(seen, state.at));
  if (seen.kind !== "vector") return replace(place, labels(seen, state.at, state.token, (id) => { state.token = id; keep(); drawSaid(place, { seen, state, keep, hear }); hear(); }));
  if (place.contains(document.activeElement)) return place; // a person writes in it
  const field = h("textarea", { rows: "2", value: state.other ?? "", "aria-label": "Another text", placeholder: "Write a text to compare with", oninput: debounce(300, () => { state.other = field.value || null; keep(); hear(); }) });
  return replace(place, h("div.stack", { data: { vector: "" } }, h("p", `A vector of ${seen.vector.size} numbers, of length ${number(seen.vector.length)}.`), h("label.field", "Another text", field)));
}

/** What a number of “Where it comes from” is. */
export function explained(found, seen, at) {
  const value = h("b", { data: { logit: String(found.logit) } }, number(found.logit)), here = h("code", visible(seen.pieces[at]));
  if (seen.kind === "reward") return ["The reward up to ", here, " is ", value];
  if (seen.kind === "vector") return ["The cosine of the two texts is ", value];
  return ["The logit of ", h("code", visible(found.piece)), seen.kind === "labels" ? " is " : [" at ", here, " is "], value];
}
