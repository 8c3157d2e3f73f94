// Fault rules: a form that adds them, and what they have done.

import { call } from "./client.js";
import { button, byId, element, onAction, plural, setText, showItems } from "./dom.js";

const WITH_VALUE = { error: "NOT_COORDINATOR", delay_ms: "1000", throttle_ms: "1000" };

const createFault = ({ number }) => {
  const text = element("code");
  const fired = element("span", { class: "chip" });
  const made = element(
    "article",
    { class: "item" },
    element("div", { class: "item-head" }, element("b", {}, `Rule ${number}`), fired, text),
    element("div", { class: "buttons" }, button("End", () => call("DELETE", `faults/${number}`))),
  );
  made.show = fault => {
    setText(text, fault.text);
    setText(fired, `fired ${plural(fault.fired, "time")}, matched ${fault.matched}`);
    fired.className = `chip ${fault.fired ? "warn" : ""}`;
  };
  return made;
};

/** Show the fault rules. */
export const showFaults = (list, faults) => showItems(list, faults, one => one.number, createFault);

const form = byId("fault-form");
const { action, value } = form.elements;

const number = text => (/^-?\d+$/.test(text) ? Number(text) : text);

const rule = () => {
  const found = {};
  for (const name of ["api", "group", "topic", "client_id", "times"]) {
    const text = form.elements[name].value.trim();
    if (text) found[name] = name === "times" || name === "api" ? number(text) : text;
  }
  const [kind, when] = action.value.split("-");
  found[kind] = kind in WITH_VALUE ? number(value.value.trim() || WITH_VALUE[kind]) : true;
  if (when) found.when = when;
  return found;
};

action.addEventListener("change", () => {
  value.placeholder = WITH_VALUE[action.value] ?? "";
  value.disabled = !(action.value in WITH_VALUE);
  value.value = "";
});
onAction(form, "submit", () => call("POST", "faults", rule()), byId("fault-message"));
onAction(byId("clear-faults"), "click", () => call("DELETE", "faults"), byId("fault-message"));
