// Questions to the server. An answer that takes long is a job: its progress is shown, and it can be canceled.

/** What the Studio refuses, in words; `fields` are those of a form that are wrong. */
export class Refused extends Error {
  constructor(message, fields = []) {
    super(message);
    this.fields = fields;
  }
}
export class Canceled extends Error {}

/** The answers of a view that was saved as one file; null in the Studio itself. */
export const recorded = globalThis.recorded ?? null;
let heard = null; // answers of a view that is being saved
const QUIET = 400; // milliseconds without a question after which a view is whole
let open = 0;
const keyOf = (path, body) => (body === undefined ? path : `${path} ${JSON.stringify(body)}`);

function replayed(path, body) {
  const key = keyOf(path, body);
  if (!(key in recorded.answers)) throw new Refused("this file holds one view as it was saved: open the Studio to compute more");
  return structuredClone(recorded.answers[key]);
}

function keep(key, found) {
  if (!heard) return found;
  heard.set(key, found);
  return structuredClone(found); // a view may change what it was given
}

/** All answers that a view asks for while `draw` makes it and until it asks nothing more. */
export async function answersOf(draw) {
  heard = new Map();
  try {
    await draw();
    for (let calm = 0; calm < QUIET; calm = open ? 0 : calm + 50) await new Promise((done) => { setTimeout(done, 50); });
    return Object.fromEntries(heard);
  } finally {
    heard = null;
  }
}

async function read(response) {
  const body = await response.json().catch(() => ({ error: `the Studio answered ${response.status}` }));
  if (response.ok && body?.canceled === true) throw new Canceled("canceled");
  if (response.ok) return body;
  throw new Refused(body.error ?? `the Studio answered ${response.status}`, body.fields);
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw new Refused("the Studio does not answer: is `chainrule studio` still running?");
  }
}

/** GET a path, or POST `body`; `onjob(job, cancel)` hears how far a long answer is. An aborted `signal` cancels its job on the server. */
export async function ask(path, { body, method, signal, onjob } = {}) {
  if (recorded) return replayed(path, body);
  open += 1;
  try {
    return keep(keyOf(path, body), await answered(path, { body, method, signal, onjob }));
  } finally {
    open -= 1;
  }
}

/** Hear what the server says of something that goes on; returns how to stop listening. */
export function follow(path, onmessage) {
  if (recorded) {
    queueMicrotask(() => onmessage(replayed(path)));
    return () => {};
  }
  const stream = new EventSource(path);
  stream.onmessage = (event) => onmessage(keep(path, JSON.parse(event.data)));
  return () => stream.close();
}

async function answered(path, { body, method, signal, onjob }) {
  const options = body === undefined ? { method: method ?? "GET" } : {
    method: method ?? "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  };
  if (options.method === "DELETE") options.headers = { "Content-Type": "application/json" };
  let response = await send(path, options);
  while (response.status === 202) {
    const job = await response.json();
    const cancel = () => send(`/api/jobs/${job.job}`, { method: "DELETE", headers: { "Content-Type": "application/json" } });
    if (signal?.aborted) {
      await cancel();
      throw new Canceled("canceled");
    }
    onjob?.(job, cancel);
    response = await send(`/api/jobs/${job.job}`, {});
  }
  if (signal?.aborted) throw new Canceled("canceled");
  return read(response);
}

export const query = (given) => new URLSearchParams(Object.entries(given).filter(([, value]) => value !== undefined && value !== null)).toString();
