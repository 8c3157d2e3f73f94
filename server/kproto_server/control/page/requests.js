// The stream of requests, newest first. Only the rows in view are elements, however many requests the page knows.

import { call } from "./client.js";
import { byId, count, element, onAction, setText, showMessage, shownLines, timeOfDay } from "./dom.js";

const ROWS_MAX = 5000; // requests that the page knows
const BODY_MAX = 200_000; // characters of a decoded body that it shows
const FILTER_MS = 400; // from the last key to a new stream
const MARGIN = 8; // rows above and below those in view

export class RequestList {
  #rows = []; // oldest first
  #elements = new Map(); // by number
  #isPaused = false;
  #skipped = 0;
  #chosen = null;

  /** `onFilter`: called with the conditions when they change. */
  constructor(onFilter) {
    this.log = byId("log");
    this.space = byId("log-rows");
    this.form = byId("filter");
    this.apis = new Set();
    this.log.addEventListener("scroll", () => this.#render());
    new ResizeObserver(() => this.#render(true)).observe(this.log);
    let timer = 0;
    this.form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => onFilter(this.filter), FILTER_MS);
    });
    this.form.addEventListener("submit", event => event.preventDefault());
    const pause = byId("pause");
    pause.addEventListener("click", () => {
      this.#isPaused = !this.#isPaused;
      pause.setAttribute("aria-pressed", String(this.#isPaused));
      pause.textContent = this.#isPaused ? "Resume" : "Pause";
      if (!this.#isPaused) this.#render(true);
    });
    onAction(byId("clear"), "click", () => call("DELETE", "requests"));
  }

  /** The conditions on requests. */
  get filter() {
    const given = [...new FormData(this.form)].map(([name, text]) => [name, text.trim()]);
    return Object.fromEntries(given.filter(([, text]) => text));
  }

  /** A stream begins: it sends the newest requests again. */
  begin() {
    this.#rows = [];
    this.#skipped = 0;
    this.log.scrollTop = 0;
    this.#render(true);
  }

  /** Add requests, or replace those that had no response. */
  add({ requests, skipped }) {
    this.#skipped += skipped;
    const last = this.#rows.at(-1)?.number ?? 0;
    const added = requests.filter(one => one.number > last);
    const changed = new Map(requests.filter(one => one.number <= last).map(one => [one.number, one]));
    if (changed.size) this.#rows = this.#rows.map(one => changed.get(one.number) ?? one);
    this.#rows.push(...added);
    if (this.#rows.length > ROWS_MAX) this.#rows.splice(0, this.#rows.length - ROWS_MAX);
    for (const { api } of added) this.#addApi(api);
    if (this.#isPaused) return;
    if (this.log.scrollTop > 0) this.log.scrollTop += added.length * this.rowHeight;
    this.#render(true);
  }

  /** Forget requests that the broker has forgotten. */
  drop(oldest) {
    const before = this.#rows.length;
    this.#rows = this.#rows.filter(one => one.number >= oldest);
    if (this.#rows.length !== before && !this.#isPaused) this.#render(true);
  }

  #addApi(api) {
    if (this.apis.has(api) || this.apis.size > 200) return;
    this.apis.add(api);
    byId("apis").append(element("option", { value: api }));
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.log).getPropertyValue("--row")) || 32;
  }

  #render(hasChanged = false) {
    if (this.#isPaused && hasChanged) return;
    const height = this.rowHeight, rows = this.#rows;
    this.space.style.height = `${rows.length * height}px`;
    const first = Math.max(0, Math.floor(this.log.scrollTop / height) - MARGIN);
    const end = Math.min(rows.length, Math.ceil((this.log.scrollTop + this.log.clientHeight) / height) + MARGIN);
    const inView = new Map();
    for (let index = first; index < end; index++) {
      const request = rows[rows.length - 1 - index];
      inView.set(request.number, request);
      let made = this.#elements.get(request.number);
      if (made?.request !== request) {
        made?.remove();
        made = this.#create(request);
        this.#elements.set(request.number, made);
        this.space.append(made);
      }
      made.style.top = `${index * height}px`;
    }
    for (const [number, made] of this.#elements) {
      if (inView.has(number)) continue;
      made.remove();
      this.#elements.delete(number);
    }
    if (hasChanged) this.log.dataset.skipped = this.#skipped ? `${count(this.#skipped)} requests were too many to show` : "";
  }

  #create(request) {
    const took = request.responded_ms === null ? "open" : `${count(request.responded_ms - request.time_ms)} ms`;
    const made = element(
      "button",
      { type: "button", role: "listitem", class: "log-row", "data-number": request.number },
      element("span", { class: "soft time" }, timeOfDay(request.time_ms)),
      element("b", { class: "api" }, `${request.api} v${request.api_version}`),
      element("span", { class: "client" }, request.client_id || "\u2013"),
      element("span", { class: "names soft" }, request.names.join(" \u00b7 ")),
      element("span", { class: request.errors.length ? "chip bad" : "soft took" }, request.errors[0] ?? took),
    );
    made.request = request;
    made.classList.toggle("is-chosen", request.number === this.#chosen);
    made.addEventListener("click", () => this.#open(request.number));
    return made;
  }

  async #open(number) {
    const panel = byId("request");
    this.#chosen = number;
    for (const [other, made] of this.#elements) made.classList.toggle("is-chosen", other === number);
    let found;
    try {
      found = await call("GET", `requests/${number}`);
    } catch (error) {
      panel.replaceChildren(element("p", { class: "message" }, error.message));
      panel.hidden = false;
      return;
    }
    if (this.#chosen !== number) return;
    const close = element("button", { type: "button", "aria-label": "Close" }, "Close");
    close.addEventListener("click", () => {
      panel.hidden = true;
      this.#chosen = null;
      this.#render();
    });
    const software = [found.software_name, found.software_version].filter(Boolean).join(" ");
    const body = (title, value) => {
      const pre = element("pre", { tabindex: "0" });
      pre.textContent = shownLines(JSON.stringify(value, null, 2), BODY_MAX);
      return [element("h3", {}, title), pre];
    };
    panel.replaceChildren(
      element("div", { class: "detail-head" }, element("b", {}, `${found.api} v${found.api_version}`), close),
      element(
        "p",
        { class: "soft small" },
        `request ${found.number} of ${found.client_id || "a client without id"}${software ? ` (${software})` : ""} from ` +
          `${found.client_host} to broker ${found.node_id} at ${timeOfDay(found.time_ms)}, correlation id ${found.correlation_id}`,
      ),
      ...(found.errors.length ? [element("p", {}, element("span", { class: "chip bad" }, found.errors.join(", ")))] : []),
      ...body("Request", found.request),
      ...body("Response", found.response),
    );
    panel.hidden = false;
    panel.scrollTop = 0;
    setText(byId("filter-message"), "");
    showMessage(byId("filter-message"), null);
  }
}
