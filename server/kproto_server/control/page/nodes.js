// The brokers, and what can happen to them.

import { call } from "./client.js";
import { button, element, plural, setText, showItems } from "./dom.js";

const NETWORKS = {
  good: null,
  "200 ms latency": { latency_ms: 200 },
  "10 kB/s": { bytes_per_second: 10_000 },
  "black hole": { black_hole: true },
  "refuses connections": { refuse: true },
};

const stateOf = node => {
  if (node.is_running) return ["running", "good"];
  return node.is_alive ? ["unreachable, not noticed", "warn"] : ["stopped", "bad"];
};

const networkText = network => {
  if (network === null) return "";
  const parts = [];
  if (network.black_hole) parts.push("black hole");
  if (network.refuse) parts.push("refuses connections");
  if (network.latency_ms) parts.push(`${network.latency_ms} ms latency`);
  if (network.bytes_per_second !== null) parts.push(`${network.bytes_per_second} bytes/s`);
  return parts.join(", ");
};

const createNode = ({ node_id: id }) => {
  const act = what => () => call("POST", `nodes/${id}/${what}`);
  const chip = element("span", { class: "chip" });
  const about = element("span", { class: "soft small" });
  const address = element("code");
  const start = button("Start", act("start"));
  const running = [
    button("Stop", act("stop"), { title: "Close connections; other brokers lead its partitions" }),
    button("Crash", act("crash"), { title: "Reset connections; the cluster notices it when its session times out" }),
    button("Disconnect", act("disconnect"), { title: "Close connections; the cluster does not notice it" }),
  ];
  const network = element("select", { "aria-label": `Network of broker ${id}` });
  for (const name of Object.keys(NETWORKS)) network.append(element("option", { value: name }, name));
  const set = button("Set network", async () => {
    const conditions = NETWORKS[network.value];
    if (conditions === null) await call("DELETE", `network?node_id=${id}`);
    else await call("POST", "network", { node_id: id, ...conditions });
  });
  const made = element(
    "article",
    { class: "item" },
    element("div", { class: "item-head" }, element("b", {}, `Broker ${id}`), chip, address, about),
    element("div", { class: "buttons" }, start, ...running, element("span", { class: "pair" }, network, set)),
  );
  made.show = node => {
    const [text, kind] = stateOf(node);
    setText(chip, text);
    chip.className = `chip ${kind}`;
    setText(address, `${node.host}:${node.port}`);
    const conditions = networkText(node.network);
    setText(about, plural(node.connection_count, "connection") + (conditions ? `; network: ${conditions}` : ""));
    start.hidden = node.is_running;
    for (const one of running) one.hidden = !node.is_running;
  };
  return made;
};

/** Show the brokers. */
export const showNodes = (list, nodes) => showItems(list, nodes, one => one.node_id, createNode);
