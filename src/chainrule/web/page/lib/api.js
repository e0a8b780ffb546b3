// Questions to the server. An answer that takes long is a job: its progress is shown, and it can be canceled.

export class Refused extends Error {}
export class Canceled extends Error {}

async function read(response) {
  const body = await response.json().catch(() => ({ error: `the Studio answered ${response.status}` }));
  if (response.ok) return body;
  if (body.canceled) throw new Canceled("canceled");
  throw new Refused(body.error ?? `the Studio answered ${response.status}`);
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw new Canceled("canceled");
    throw new Refused("the Studio does not answer: is `chainrule studio` still running?");
  }
}

/** GET a path, or POST `body`; `onjob(job, cancel)` hears how far a long answer is. */
export async function ask(path, { body, method, signal, onjob } = {}) {
  const options = body === undefined ? { method: method ?? "GET", signal } : {
    method: method ?? "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
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
  return read(response);
}

export const query = (given) => new URLSearchParams(Object.entries(given).filter(([, value]) => value !== undefined && value !== null)).toString();
