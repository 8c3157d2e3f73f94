// The page: takes the events of the broker and passes them to the sections.

import { call, Events, setToken } from "./client.js";
import { byId, count, dateTime, element, onAction, setText, showItems, showMessage } from "./dom.js";
import { showFaults } from "./faults.js";
import { GroupList } from "./groups.js";
import { showNodes } from "./nodes.js";
import { RequestList } from "./requests.js";
import { Timeline } from "./timeline.js";
import { TopicList } from "./topics.js";

const TICK_MS = 500;

const state = {};
const clock = { nowMs: 0, rate: 1, seenMs: 0 };
/** Return the broker's time. */
const now = () => clock.nowMs + (performance.now() - clock.seenMs) * clock.rate;

const groups = new GroupList(byId("group-list"), now);
const topics = new TopicList(byId("topic-list"));
const timeline = new Timeline(byId("timeline-chart"));
const requests = new RequestList(filter => events.start(filter));

const events = new Events({
  begin: () => requests.begin(),
  clock: data => {
    Object.assign(clock, { nowMs: data.now_ms, rate: data.rate, seenMs: performance.now() });
    tick();
    groups.refresh();
    topics.refresh();
  },
  state: data => {
    Object.assign(state, data);
    show(data);
  },
  requests: data => requests.add(data),
  timeline: data => timeline.add(data.events),
  status: (text, error) => {
    setText(byId("live"), text);
    byId("live").dataset.state = text;
    byId("token-form").hidden = error?.status !== 401;
    if (error?.status === 400) showMessage(byId("filter-message"), error.message);
    else showMessage(byId("message"), error === null ? null : error.message);
    if (error === null) showMessage(byId("filter-message"), null);
  },
});

const show = changed => {
  if (changed.kafka_version) setText(byId("version"), `Kafka ${changed.kafka_version}`);
  if (changed.bootstrap_servers) {
    setText(byId("address"), changed.bootstrap_servers);
    document.title = `kproto ${changed.bootstrap_servers.split(",")[0]}`;
  }
  if (changed.groups) groups.show(changed.groups, state.has_more_groups);
  if (changed.topics) topics.show(changed.topics, state.topic_count);
  if (changed.nodes) showNodes(byId("node-list"), changed.nodes);
  if (changed.faults) showFaults(byId("fault-list"), changed.faults);
  if (changed.requests) {
    requests.drop(changed.requests.oldest);
    timeline.drop(changed.requests.oldest);
    setText(byId("request-count"), `${count(changed.requests.taken - changed.requests.oldest + 1)} kept`);
  }
  showCards();
};

const showCards = () => {
  const running = state.nodes.filter(one => one.is_running).length;
  const rebalancing = state.groups.filter(one => /Rebalance|Assigning|Reconciling/.test(one.state)).length;
  const fired = state.faults.reduce((sum, one) => sum + one.fired, 0);
  const cards = [
    { label: `of ${state.nodes.length} brokers run`, figure: running, kind: running < state.nodes.length ? "bad" : "good" },
    { label: "connections", figure: state.nodes.reduce((sum, one) => sum + one.connection_count, 0) },
    { label: "topics", figure: state.topic_count },
    { label: "groups", figure: state.groups.length, more: state.has_more_groups },
    { label: "rebalancing", figure: rebalancing, kind: rebalancing ? "warn" : "" },
    { label: "faults fired", figure: fired, kind: fired ? "warn" : "" },
  ];
  showItems(byId("cards"), cards, one => cards.indexOf(one), () => {
    const figure = element("b"), label = element("span");
    const card = element("div", { class: "card" }, figure, label);
    card.show = one => {
      const text = count(one.figure) + (one.more ? "+" : "");
      setText(figure, text);
      figure.style.setProperty("--size", text.length);
      setText(label, one.label);
      card.className = `card ${one.kind ?? ""}`;
    };
    return card;
  });
};

const rateText = () => {
  if (state.clock_is_automatic) return "jumps to the next timer when idle";
  if (clock.rate === 1) return "real time";
  return clock.rate === 0 ? "stands still until it is advanced" : `${count(clock.rate)} times real time`;
};

const tick = () => {
  if (!clock.seenMs) return;
  setText(byId("now"), `${dateTime(now())} UTC`);
  setText(byId("rate"), rateText());
  groups.tick();
};

for (const one of byId("advance").querySelectorAll("[data-ms]")) {
  onAction(one, "click", () => call("POST", "clock/advance", { milliseconds: Number(one.dataset.ms) }));
}
const reset = byId("reset");
onAction(reset, "click", async () => {
  if (reset.textContent === "Reset") {
    reset.textContent = "Delete all?";
    setTimeout(() => (reset.textContent = "Reset"), 3000);
    return;
  }
  reset.textContent = "Reset";
  await call("POST", "reset", {});
});
byId("token-form").addEventListener("submit", event => {
  event.preventDefault();
  setToken(byId("token").value.trim());
  byId("token").value = "";
  events.start();
});
byId("address").addEventListener("click", () => getSelection().selectAllChildren(byId("address")));

setInterval(tick, TICK_MS);
events.start();
