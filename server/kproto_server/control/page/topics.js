// Topics: partitions and records of each; its newest records once it is opened.

import { call, segment } from "./client.js";
import { count, dateTime, element, plural, setText, showItems } from "./dom.js";
import { OpenItem } from "./open_item.js";

const RECORDS = 20;

class TopicDetail {
  constructor() {
    this.none = element("p", { class: "soft small" }, "No records.");
    this.records = element("div", { class: "records" });
    this.panel = element("div", { class: "item-detail" }, this.none, this.records);
  }

  show({ records }) {
    this.none.hidden = records.length > 0;
    const newest = [...records].sort((a, b) => b.timestamp_ms - a.timestamp_ms || b.offset - a.offset);
    showItems(this.records, newest, one => `${one.partition}-${one.offset}`, one => {
      const parts = [`${one.partition}:${one.offset}`, dateTime(one.timestamp_ms)];
      if (one.headers.length) parts.push(one.headers.map(header => `${header.name}=${textOf(header, "value")}`).join(", "));
      if (one.control) parts.push(`marker: ${one.control}`);
      return element(
        "article",
        { class: "record" },
        element("span", { class: "soft small" }, parts.join(" \u00b7 ")),
        element("code", { class: "key" }, textOf(one, "key")),
        element("code", { class: "value" }, textOf(one, "value")),
      );
    });
  }
}

/** Return a key or a value: text, or bytes in base64. */
const textOf = (from, name) => from[name] ?? (from[`${name}_base64`] ? `base64 ${from[`${name}_base64`]}` : `no ${name}`);

/** The list of topics. */
export class TopicList {
  constructor(list) {
    this.list = list;
    this.more = element("p", { class: "soft small" });
    list.after(this.more);
  }

  show(topics, total) {
    const sorted = [...topics].sort((a, b) => a.is_internal - b.is_internal);
    showItems(this.list, sorted, one => one.topic, one => this.#create(one));
    const left = total - topics.length;
    setText(this.more, total === 0 ? "There are no topics yet." : left ? `There are ${plural(left, "more topic")}.` : "");
  }

  #create({ topic: name }) {
    const about = element("span", { class: "soft small" });
    const item = new OpenItem([element("b", {}, name), about], new TopicDetail(), () =>
      call("GET", `topics/${segment(name)}/records?newest=true&limit=${RECORDS}`),
    );
    const made = item.made;
    made.item = item;
    made.show = topic => {
      const records = topic.record_count === null ? "" : ` \u00b7 ${count(topic.record_count)} records`;
      setText(about, plural(topic.partition_count, "partition") + records + (topic.is_internal ? " \u00b7 internal" : ""));
    };
    return made;
  }

  /** Have open topics show what is new. */
  refresh() {
    for (const one of this.list.children) one.item.refresh();
  }
}
