// Groups: state, lag and next expiration of each; its members and offsets once it is opened.

import { call, segment } from "./client.js";
import { count, dateTime, duration, element, plural, setText, showItems } from "./dom.js";
import { OpenItem } from "./open_item.js";

const KINDS = { Stable: "good", Empty: "", Dead: "bad" };

/** Return a countdown to a time; null: never. */
const countdown = (ms, now) => {
  if (ms === null) return "never";
  return ms > now ? duration(ms - now) : "due, deleted at the next check";
};

const partitionsOf = member => {
  const byTopic = new Map();
  for (const { topic, partition } of member.partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition]);
  return [...byTopic].map(([topic, all]) => `${topic}: ${all.join(", ")}`).join("; ") || "\u2013";
};

const row = names => {
  const cells = names.map(name => element("td", { "data-label": name }));
  return { made: element("tr", {}, ...cells), cells };
};
const table = names =>
  element("table", {}, element("thead", {}, element("tr", {}, ...names.map(name => element("th", {}, name)))), element("tbody"));

const MEMBER = ["Client", "Member", "Host", "Partitions"];
const OFFSET = ["Partition", "Offset", "End", "Lag", "Committed", "Expires in", "Metadata"];

class GroupDetail {
  constructor(now) {
    this.now = now;
    this.about = element("p", { class: "soft small" });
    this.members = table(MEMBER);
    this.offsets = table(OFFSET);
    this.panel = element("div", { class: "item-detail" }, this.about, this.members, this.offsets);
    this.expiring = [];
  }

  show(group) {
    const node = group.coordinator === null ? "no coordinator" : `coordinator: broker ${group.coordinator}`;
    const protocol = group.protocol ? `, ${group.protocol_type} protocol ${group.protocol}` : "";
    setText(this.about, `${group.kind} group, ${node}${protocol}`);
    this.members.hidden = group.members.length === 0;
    showItems(this.members.tBodies[0], group.members, one => one.member_id, () => {
      const { made, cells } = row(MEMBER);
      made.show = member => {
        setText(cells[0], member.client_id + (member.is_leader ? " (leader)" : ""));
        setText(cells[1], member.group_instance_id ? `${member.member_id} (static: ${member.group_instance_id})` : member.member_id);
        setText(cells[2], member.client_host);
        setText(cells[3], partitionsOf(member));
      };
      return made;
    });
    this.offsets.hidden = group.offsets.length === 0;
    showItems(this.offsets.tBodies[0], group.offsets, one => JSON.stringify([one.topic, one.partition]), () => {
      const { made, cells } = row(OFFSET);
      made.show = one => {
        setText(cells[0], `${one.topic}-${one.partition}`);
        setText(cells[1], count(one.offset));
        setText(cells[2], count(one.end_offset));
        setText(cells[3], count(one.lag));
        setText(cells[4], one.committed_ms === undefined ? "\u2013" : dateTime(one.committed_ms));
        made.expiresMs = one.expires_ms;
        setText(cells[6], one.metadata || "\u2013");
      };
      made.tick = now => setText(cells[5], made.expiresMs === undefined ? "\u2013" : countdown(made.expiresMs, now));
      return made;
    });
    this.tick();
  }

  tick() {
    for (const one of this.offsets.tBodies[0].rows) one.tick(this.now());
  }
}

/** The list of groups. */
export class GroupList {
  constructor(list, now) {
    this.list = list;
    this.now = now;
    this.more = element("p", { class: "soft small" });
    list.after(this.more);
  }

  show(groups, hasMore) {
    showItems(this.list, groups, one => one.group_id, one => this.#create(one));
    setText(this.more, groups.length === 0 ? "No group has committed or joined yet." : hasMore ? "There are more groups." : "");
    this.tick();
  }

  #create({ group_id: id }) {
    const chip = element("span", { class: "chip" });
    const about = element("span", { class: "soft small" });
    const item = new OpenItem([element("b", {}, id), chip, about], new GroupDetail(this.now), () =>
      call("GET", `groups/${segment(id)}`),
    );
    const made = item.made;
    made.item = item;
    made.show = group => {
      made.group = group;
      setText(chip, group.state);
      chip.className = `chip ${KINDS[group.state] ?? "warn"}`;
    };
    made.tick = () => {
      const group = made.group, parts = [plural(group.member_count, "member")];
      if (group.generation > 0) parts.push(`generation ${group.generation}`);
      if (group.lag !== null) parts.push(`lag ${count(group.lag)}`);
      if (group.expires_ms !== null) parts.push(`offsets expire: ${countdown(group.expires_ms, this.now())}`);
      setText(about, parts.join(" \u00b7 "));
      if (item.isOpen) item.detail.tick();
    };
    return made;
  }

  /** Show the time again. */
  tick() {
    for (const one of this.list.children) one.tick();
  }

  /** Have open groups show what is new. */
  refresh() {
    for (const one of this.list.children) one.item.refresh();
  }
}
