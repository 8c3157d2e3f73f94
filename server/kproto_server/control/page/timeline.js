// The timeline, drawn: a lane for each group, with the rebalances of its members, its commits, and its errors.
//
// Time runs to the right on the broker's clock. Where nothing happened for long, and where a test has advanced the clock,
// the axis has a break with its length, so that both seconds and days fit.

import { duration, shown, timeOfDay } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const EVENTS_MAX = 3000;
const LANES_MAX = 8;
const BREAK_MS = 15_000; // a gap of this length breaks the axis
const SEGMENTS_MAX = 5;
const LANE = 46, TOP = 8, AXIS = 26, BREAK = 46, LABEL = 18;
const KINDS = ["commit", "join", "sync", "epoch", "leave"];

const draw = (name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const endOf = event => Math.max(event.time_ms, event.until_ms ?? event.time_ms);

/** Return the newest stretches of time in which something happened, each as [begin, end]. */
const segmentsOf = events => {
  const found = [];
  for (const event of [...events].sort((a, b) => a.time_ms - b.time_ms)) {
    const last = found.at(-1);
    if (last !== undefined && event.time_ms - last[1] < BREAK_MS) last[1] = Math.max(last[1], endOf(event));
    else found.push([event.time_ms, endOf(event)]);
  }
  return found.slice(-SEGMENTS_MAX);
};

/** Return a function from a time to a position, and the places of the breaks. */
const scaleOf = (segments, width) => {
  const room = width - BREAK * (segments.length - 1);
  const weights = segments.map(([begin, end]) => Math.sqrt(end - begin + 200));
  const total = weights.reduce((sum, one) => sum + one, 0);
  let at = 0;
  const placed = segments.map(([begin, end], index) => {
    const size = (room * weights[index]) / total;
    const made = { begin, end, left: at, right: at + size };
    at += size + BREAK;
    return made;
  });
  const position = ms => {
    const one = placed.find(segment => ms <= segment.end) ?? placed.at(-1);
    const share = one.end === one.begin ? 0.5 : (Math.max(ms, one.begin) - one.begin) / (one.end - one.begin);
    return one.left + 6 + Math.min(share, 1) * (one.right - one.left - 12);
  };
  return { placed, position };
};

const title = event => {
  const what = event.kind === "commit" && event.request_count > 1 ? `${event.request_count} commits` : event.kind;
  const took = event.until_ms === null ? "open" : `${event.until_ms - event.time_ms} ms`;
  const parts = [`${timeOfDay(event.time_ms)} ${what}`, event.client_id, took];
  if (event.generation >= 0) parts.push(`generation ${event.generation}`);
  if (event.error) parts.push(event.error);
  return parts.map(one => shown(one)).join("\n");
};

export class Timeline {
  #events = new Map(); // by kind and number of the request
  #isDrawing = false;

  constructor(target) {
    this.target = target;
    new ResizeObserver(() => this.#draw()).observe(target);
    this.#draw();
  }

  add(events) {
    for (const event of events) this.#events.set(event.number, event);
    for (const number of [...this.#events.keys()].slice(0, -EVENTS_MAX)) this.#events.delete(number);
    this.#draw();
  }

  /** Forget events that the broker has forgotten. */
  drop(oldest) {
    for (const number of [...this.#events.keys()]) if (number < oldest) this.#events.delete(number);
    this.#draw();
  }

  #draw() {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.#drawNow();
    });
  }

  #drawNow() {
    const width = Math.floor(this.target.clientWidth);
    if (width < 50) return;
    const byGroup = new Map();
    for (const event of this.#events.values()) {
      const lane = byGroup.get(event.group_id) ?? [];
      lane.push(event);
      byGroup.delete(event.group_id); // the group of the newest event is the last one
      byGroup.set(event.group_id, lane);
    }
    const lanes = [...byGroup].slice(-LANES_MAX).reverse();
    if (lanes.length === 0) {
      const none = document.createElement("p");
      none.className = "soft small";
      none.textContent = "No group has joined or committed yet.";
      this.target.replaceChildren(none);
      return;
    }
    const { placed, position } = scaleOf(segmentsOf(lanes.flatMap(([, events]) => events)), width);
    const height = TOP + lanes.length * LANE + AXIS;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Timeline of groups" });
    lanes.forEach(([group, events], index) => this.#drawLane(svg, group, events, TOP + index * LANE, { width, placed, position }));
    this.#drawAxis(svg, placed, height);
    this.target.replaceChildren(svg);
  }

  #drawLane(svg, group, events, y, { width, placed, position }) {
    const letters = Math.max(8, Math.floor(width / 9));
    svg.append(draw("text", { x: 2, y: y + 12, class: "lane" }, shown(group, letters)));
    for (const { left, right } of placed)
      svg.append(draw("rect", { x: left, y: y + LABEL, width: right - left, height: LANE - LABEL - 6, class: "lane-back", rx: 4 }));
    const begin = placed[0].begin;
    const seen = new Set();
    for (const kind of KINDS) {
      for (const event of events) {
        if (event.kind !== kind || endOf(event) < begin) continue;
        const x = position(event.time_ms), end = event.until_ms === null ? placed.at(-1).right - 6 : position(event.until_ms);
        const isSpan = kind === "join" || kind === "sync";
        const size = isSpan ? Math.max(end - x, 3) : 3;
        const key = `${kind} ${event.error !== ""} ${Math.round(x)} ${Math.round(size)}`;
        if (seen.has(key)) continue; // covered by another one
        seen.add(key);
        const tall = kind === "commit" ? 12 : LANE - LABEL - 10;
        const bottom = y + LANE - 8;
        const mark = draw("rect", { x: Math.min(x, width - size), y: bottom - tall, width: size, height: tall, rx: 1.5 });
        mark.setAttribute("class", `mark ${kind}${event.error ? " failed" : ""}`);
        mark.append(draw("title", {}, title(event)));
        svg.append(mark);
      }
    }
  }

  #drawAxis(svg, placed, height) {
    placed.forEach((segment, index) => {
      const room = segment.right - segment.left;
      if (room > 60) svg.append(draw("text", { x: segment.left + 2, y: height - 8, class: "axis" }, timeOfDay(segment.begin).slice(0, 8)));
      if (room > 190)
        svg.append(draw("text", { x: segment.right - 2, y: height - 8, class: "axis end" }, timeOfDay(segment.end).slice(0, 12)));
      const next = placed[index + 1];
      if (next === undefined) return;
      const middle = (segment.right + next.left) / 2;
      svg.append(draw("line", { x1: middle, x2: middle, y1: TOP, y2: height - AXIS, class: "break" }));
      svg.append(draw("text", { x: middle, y: height - AXIS + 10, class: "axis middle" }, duration(next.begin - segment.end).split(" ").slice(0, 2).join(" ")));
    });
  }
}
