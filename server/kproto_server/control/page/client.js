// The control API as the page uses it: requests, the token, and the stream of events.

const BASE = new URL(".", document.baseURI);
const TOKEN = `kproto token of ${BASE.pathname}`;
const RETRY_MS = 1000;
const EVENTS_MAX = 4_000_000; // characters of an event: more is not the broker's

if (location.hash.startsWith("#token=")) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(location.hash.slice(7)));
  history.replaceState(null, "", location.pathname);
}

/** Keep the token for this tab. */
export const setToken = token => sessionStorage.setItem(TOKEN, token);

/** An error of the control API; its message is for people. */
export class ControlError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const send = async (method, path, options = {}) => {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    response = await fetch(new URL(path, BASE), { method, headers, body, signal: options.signal, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ControlError(0, "the broker does not respond");
  }
  if (response.ok) return response;
  let detail = response.statusText;
  try {
    detail = (await response.json()).detail ?? detail;
  } catch {
    // no problem details
  }
  throw new ControlError(response.status, detail);
};

/** Call an operation; return its JSON, or null if it has none. */
export const call = async (method, path, body) => {
  const response = await send(method, path, { body });
  return response.status === 204 ? null : response.json();
};

/** Return a segment of a path: a group may have any name. */
export const segment = text => encodeURIComponent(text);

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    if (text.length > EVENTS_MAX) throw new ControlError(0, "an event is too large");
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      if (name) yield [name, JSON.parse(data)];
    }
  }
}

/** The stream of events: begins again when it ends, and stops while the page is not visible. */
export class Events {
  #abort = null;
  #filter = {};

  /** `on`: a function for each event by its name, and `status` (a text, an error or null). */
  constructor(on) {
    this.on = on;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
  }

  /** Begin again, with these conditions on requests. */
  start(filter = this.#filter) {
    this.stop();
    this.#filter = filter;
    const abort = (this.#abort = new AbortController());
    this.#run(filter, abort.signal);
  }

  stop() {
    this.#abort?.abort();
    this.#abort = null;
  }

  async #run(filter, signal) {
    while (!signal.aborted) {
      let error = null;
      try {
        const response = await send("GET", `events?${new URLSearchParams(filter)}`, { signal });
        this.on.begin();
        this.on.status("live", null);
        for await (const [name, data] of eventsOf(response)) {
          if (signal.aborted) return;
          this.on[name]?.(data);
        }
      } catch (caught) {
        error = caught;
      }
      if (signal.aborted) return;
      if (error !== null) this.on.status("disconnected", error);
      if (error?.status === 400 || error?.status === 401) return; // begins again with another filter or token
      await new Promise(done => setTimeout(done, RETRY_MS));
    }
  }
}
