// An item of a list that opens, and asks for its details while it is open.

import { element, shown } from "./dom.js";

const REFRESH_MS = 900;

/** `head`: the elements of its button; `detail`: has `panel` and `show(data)`; `ask`: returns a promise of data. */
export class OpenItem {
  #isAsking = false;
  #askedMs = -REFRESH_MS;

  constructor(head, detail, ask) {
    this.detail = detail;
    this.ask = ask;
    this.isOpen = false;
    this.button = element("button", { type: "button", class: "item-head", "aria-expanded": "false" }, ...head);
    this.error = element("p", { class: "message" });
    this.error.hidden = detail.panel.hidden = true;
    this.button.addEventListener("click", () => this.#toggle());
    this.made = element("article", { class: "item" }, this.button, this.error, detail.panel);
  }

  #toggle() {
    this.isOpen = !this.isOpen;
    this.button.setAttribute("aria-expanded", String(this.isOpen));
    this.detail.panel.hidden = !this.isOpen;
    this.error.hidden = true;
    this.#askedMs = -REFRESH_MS;
    this.refresh();
  }

  /** Ask again, if the item is open and time has passed. */
  async refresh() {
    if (!this.isOpen || this.#isAsking || performance.now() - this.#askedMs < REFRESH_MS) return;
    this.#isAsking = true;
    this.#askedMs = performance.now();
    try {
      this.detail.show(await this.ask());
      this.error.hidden = true;
    } catch (error) {
      this.error.textContent = shown(error.message);
      this.error.hidden = false;
    } finally {
      this.#isAsking = false;
    }
  }
}
