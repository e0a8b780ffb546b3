// The text of an answer cut into its tokens: what is shown is always the text, a token says only where to cut.
// `cut(choice)` of an event gives pieces of text with their tokens; a piece without one continues the piece before.

// Of a completion: tokens say where they begin, in characters of the prompt and the text.
export function completionPieces(prompt) {
  let at = Array.from(prompt).length;
  return (choice) => {
    const found = choice.logprobs, text = Array.from(choice.text), pieces = [];
    const offsets = found?.text_offset ?? [];
    const between = (from, to) => text.slice(Math.max(0, from - at), Math.max(0, to - at)).join("");
    pieces.push({ text: between(at, offsets[0] ?? Infinity) });
    offsets.forEach((offset, i) => pieces.push({
      text: between(offset, offsets[i + 1] ?? Infinity), token: found.tokens[i], logprob: found.token_logprobs[i],
      top: Object.entries(found.top_logprobs[i] ?? {}).map(([token, logprob]) => ({ token, logprob })),
    }));
    at += text.length;
    return pieces.filter((piece) => piece.text);
  };
}

// Of a conversation: tokens are bytes, of which several may be one character; those that the text lacks are not shown.
export function chatPieces() {
  const decoder = new TextDecoder();
  let begun = false, rest = "";
  return (choice) => {
    const text = choice.delta.content ?? "", pieces = [];
    let at = 0;
    const take = (spelled, token) => {
      const wanted = begun || text.startsWith(spelled) ? spelled : spelled.trimStart(); // the space before an answer
      let n = 0;
      while (n < wanted.length && wanted[n] === text[at + n]) n += 1;
      if (n < wanted.length && at + n < text.length) return; // hidden, such as a special token
      if (n) pieces.push({ ...token, text: text.slice(at, at + n) });
      at += n;
      begun ||= n > 0;
      rest = wanted.slice(n);
    };
    const pending = rest;
    rest = "";
    if (pending) take(pending, {});
    for (const each of choice.logprobs?.content ?? []) {
      take(decoder.decode(new Uint8Array(each.bytes), { stream: true }),
        { token: each.token, logprob: each.logprob, top: each.top_logprobs });
    }
    if (at < text.length) pieces.push({ text: text.slice(at) });
    return pieces;
  };
}
