// Which exercises were answered: kept in this browser, under one key.

const KEY = "lessons";

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** Numbers of the exercises of a lesson that were answered. */
export const doneIn = (name) => new Set(Array.isArray(read()[name]) ? read()[name] : []);

export function note(name, number) {
  const all = read();
  all[name] = [...new Set([...(all[name] ?? []), number])];
  localStorage.setItem(KEY, JSON.stringify(all));
}

export const forget = () => localStorage.removeItem(KEY);
