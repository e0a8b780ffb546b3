// The sampling controls: a number each, kept between visits; an empty field leaves the choice to the model.

const FIELDS = [
  { name: "max_tokens", label: "Tokens at most", min: 1, step: 1, value: "128" },
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.05 },
  { name: "top_k", label: "Top k", min: 1, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01 },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: 0.1 },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.1 },
  { name: "seed", label: "Seed", min: 0, step: 1 },
];
const inputs = new Map();

export function build(parent) {
  for (const field of FIELDS) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    label.className = "field";
    label.append(field.label);
    Object.assign(input, { type: "number", min: field.min ?? "", max: field.max ?? "", step: "any", placeholder: "default" });
    input.value = localStorage.getItem(`chainrule.${field.name}`) ?? field.value ?? "";
    input.addEventListener("change", () => localStorage.setItem(`chainrule.${field.name}`, input.value));
    label.append(input);
    parent.append(label);
    inputs.set(field.name, input);
  }
}

export function values() {
  const found = {};
  for (const [name, input] of inputs) {
    if (!input.reportValidity()) return null;
    if (input.value !== "") found[name] = Number(input.value);
  }
  return found;
}
