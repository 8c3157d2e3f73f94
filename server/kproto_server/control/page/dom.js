// Elements, and texts of a broker's clients. No text becomes markup: it is set as text only, and characters that can't be
// seen, or that change the direction of what follows, are shown as their code points.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const TEXT_MAX = 300; // characters of a name

const codePoint = one => `\\u{${one.codePointAt(0).toString(16)}}`;

/** Return a text of a client as it can be shown, at most `most` characters. */
export const shown = (text, most = TEXT_MAX) => {
  const whole = String(text);
  const cut = whole.length > most ? `${whole.slice(0, most)}\u2026` : whole;
  return cut.replace(UNSEEN, codePoint);
};

/** Return text of several lines as it can be shown. */
export const shownLines = (text, most) => text.slice(0, most).split("\n").map(line => shown(line, most)).join("\n");

/** Return a new element. Attributes: `class`, `title`, `data-...`, `on` (listeners). Children: elements and texts. */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else made.setAttribute(name, shown(value));
  }
  made.append(...children.map(one => (one instanceof Node ? one : shown(one))));
  return made;
};

/** Set the text of an element if it is another one. */
export const setText = (target, text) => {
  const wanted = shown(text);
  if (target.textContent !== wanted) target.textContent = wanted;
};

/** Have a parent's children show items: elements stay as long as their keys, so that a click hits what it was meant for. */
export const showItems = (parent, items, keyOf, create) => {
  const known = (parent.shownItems ??= new Map());
  const wanted = new Map(items.map(item => [keyOf(item), item]));
  for (const [key, child] of known) {
    if (!wanted.has(key)) {
      child.remove();
      known.delete(key);
    }
  }
  let place = parent.firstElementChild;
  for (const [key, item] of wanted) {
    let child = known.get(key);
    if (child === undefined) known.set(key, (child = create(item)));
    child.show?.(item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
};

export const byId = id => document.getElementById(id);

/** Show an error's text in an element; no text hides it. */
export const showMessage = (target, text) => {
  setText(target, text ?? "");
  target.hidden = !text;
};

/** Return a button that calls an action, is disabled meanwhile, and shows its error. */
export const button = (label, action, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, label);
  onAction(made, "click", action);
  return made;
};

/** Call an asynchronous action for an event of a button or a form. */
export const onAction = (target, event, action, message = byId("message")) => {
  target.addEventListener(event, async happened => {
    happened.preventDefault();
    if (target.dataset.isBusy) return;
    target.dataset.isBusy = "yes";
    try {
      await action();
      showMessage(message, null);
    } catch (error) {
      showMessage(message, error.message);
    } finally {
      delete target.dataset.isBusy;
    }
  });
};

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** Return a duration with its two greatest units: 6 d 23 h. */
export const duration = ms => {
  let left = Math.max(0, Math.floor(ms / 1000) * 1000);
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count || parts.length) parts.push(`${count} ${unit}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ") || `${Math.max(0, Math.floor(ms))} ms`;
};

const date = ms => {
  const found = new Date(ms);
  return Number.isNaN(found.getTime()) ? null : found.toISOString();
};
/** Return a time as 2026-11-23 13:00:00, in UTC. */
export const dateTime = ms => date(ms)?.slice(0, 19).replace("T", " ") ?? `${ms} ms`;
/** Return the time of the day as 13:00:00.000, in UTC. */
export const timeOfDay = ms => date(ms)?.slice(11, 23) ?? `${ms} ms`;

/** Return a whole number with groups of three digits. */
export const count = number => (number === null || number === undefined ? "\u2013" : number.toLocaleString("en-US"));

/** Return "1 member" or "2 members". */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
