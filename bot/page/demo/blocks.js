// Block Kit blocks as DOM nodes. `press(element, chosen, node)` is called for what can be pressed.

import { chartBlock, dataTable } from "/page/data.js";
import { h } from "/page/dom.js";
import { emoji, formatDate, markdown, mrkdwn, names } from "/page/text.js";

const rich = (object) =>
  object?.type === "mrkdwn" ? { html: mrkdwn(object.text) } : {};
const textNode = (tag, cls, object) =>
  object?.type === "mrkdwn"
    ? h(tag, { class: cls, ...rich(object) })
    : h(tag, { class: cls }, plain(object?.text ?? ""));
export const plain = (text) => text.replace(/:([a-z0-9_+-]+):/g, (all, name) => emoji(name) ?? all);

export function confirmDialog(confirm) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "modal is-small" });
    const done = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    dialog.append(
      h("h2", {}, plain(confirm.title?.text ?? "Are you sure?")),
      textNode("p", "modal-text", confirm.text),
      h("footer", {},
        h("button", { class: "btn", type: "button", onclick: () => done(false) }, plain(confirm.deny?.text ?? "Cancel")),
        h("button", { class: `btn is-${confirm.style ?? "primary"}`, type: "button", onclick: () => done(true) }, plain(confirm.confirm?.text ?? "Yes"))),
    );
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); done(false); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function pressed(element, chosen, node, press) {
  if (element.confirm && !(await confirmDialog(element.confirm))) return;
  await press(element, chosen, node);
}

function button(element, blockId, press) {
  const named = { ...element, block_id: blockId };
  return h("button", {
    class: `btn is-${element.style ?? "plain"}`, type: "button", "data-action": element.action_id,
    "aria-label": element.accessibility_label,
    onclick: (event) => {
      if (element.url && /^https?:/.test(element.url)) window.open(element.url, "_blank", "noopener");
      pressed(named, {}, event.currentTarget, press);
    },
  }, plain(element.text?.text ?? element.icon ?? ""));
}

function menu(element, blockId, press) {
  const named = { ...element, block_id: blockId };
  const groups = element.option_groups ?? [];
  const options = element.options ?? groups.flatMap((group) => group.options);
  const one = (option) => h("option", { value: option.value, selected: option.value === initial }, plain(option.text.text));
  const initial = element.initial_option?.value;
  const select = h("select", { class: "select", "data-action": element.action_id, "aria-label": element.placeholder?.text ?? "Choose" },
    h("option", { value: "", disabled: true, selected: !initial }, plain(element.placeholder?.text ?? (element.type === "overflow" ? "⋯" : "Choose…"))),
    ...(groups.length ? groups.map((group) => h("optgroup", { label: plain(group.label.text) }, ...group.options.map(one))) : options.map(one)));
  select.addEventListener("change", () => {
    const chosen = options.find((option) => option.value === select.value);
    pressed(named, { selected_option: chosen }, select, press).finally(() => { select.value = initial ?? ""; }); // the same one again is a choice too
  });
  return select;
}

function feedback(element, blockId, press) {
  const named = { ...element, block_id: blockId };
  const one = (side, sign) => h("button", {
    class: "btn is-plain is-opinion", type: "button", "aria-label": element[side].accessibility_label,
    title: plain(element[side].text.text),
    onclick: (event) => press(named, { value: element[side].value }, event.currentTarget),
  }, sign);
  return h("span", { class: "row" }, one("positive_button", "👍"), one("negative_button", "👎"));
}

function interactive(element, blockId, press) {
  if (element.type === "button" || element.type === "icon_button") return button(element, blockId, press);
  if (element.type === "feedback_buttons") return feedback(element, blockId, press);
  if (element.type === "image") return image(element);
  if (/select$|^overflow$|^radio_buttons$/.test(element.type)) return menu(element, blockId, press);
  return h("span", { class: "muted" }, `[${element.type}]`);
}

// Nothing is loaded from outside; a picture is named, not shown.
const image = (element) => h("span", { class: "muted" }, `🖼 ${element.alt_text ?? ""}`);

function styled(node, style = {}) {
  if (style.code) node = h("code", {}, node);
  if (style.bold) node = h("strong", {}, node);
  if (style.italic) node = h("em", {}, node);
  if (style.strike) node = h("s", {}, node);
  return node;
}

function richInline(element) {
  switch (element.type) {
    case "text": return styled(document.createTextNode(element.text), element.style);
    case "user": return h("span", { class: `mention${element.user_id === names.me ? " is-me" : ""}` }, `@${names.users.get(element.user_id) ?? element.user_id}`);
    case "channel": return h("span", { class: "mention" }, `#${names.channels.get(element.channel_id) ?? element.channel_id}`);
    case "emoji": return document.createTextNode(emoji(element.name) ?? `:${element.name}:`);
    case "link": return /^(https?:\/\/|mailto:)/i.test(element.url)
      ? styled(h("a", { href: element.url, target: "_blank", rel: "noopener noreferrer" }, element.text ?? element.url), element.style)
      : document.createTextNode(element.text ?? element.url);
    case "date": return h("time", {}, formatDate(element.timestamp, element.format));
    case "broadcast": return h("span", { class: "mention is-me" }, `@${element.range}`);
    default: return document.createTextNode(element.text ?? "");
  }
}

export function richText(block) {
  const parts = (block.elements ?? []).map((part) => {
    const inner = () => part.elements.map(richInline);
    switch (part.type) {
      case "rich_text_preformatted": return h("pre", {}, h("code", {}, ...inner()));
      case "rich_text_quote": return h("blockquote", {}, ...inner());
      case "rich_text_list":
        return h(part.style === "ordered" ? "ol" : "ul", { class: `indent-${Math.min(part.indent ?? 0, 4)}` },
          ...part.elements.map((item) => h("li", {}, ...item.elements.map(richInline))));
      default: return h("div", { class: "prewrap" }, ...inner());
    }
  });
  return h("div", { class: "b-rich md" }, ...parts);
}

const CHIP = /^(✓|⏳|🟡|🔴|⚪|…)/u;
const TONES = [["🔴", "bad"], ["🟡", "warn"], ["⚪", "cut"], ["⏳", "busy"], ["✓", "good"]];

function context(block) {
  const many = block.elements.length > 1;
  return h("div", { class: "b-context" }, ...block.elements.map((element) => {
    if (element.type === "image") return image(element);
    const text = element.text ?? "";
    const tone = TONES.find(([mark]) => text.startsWith(mark))?.[1] ?? "plain";
    const chip = CHIP.test(text) || (many && text.length < 80);
    return textNode("span", chip ? `chip is-${tone}` : "small", element);
  }));
}

function tableBlock(block) {
  const [head, ...rows] = block.rows;
  const cell = (tag, each) => h(tag, {}, each.type === "rich_text" ? richText(each) : each.text ?? "");
  return h("div", { class: "table" }, h("table", {},
    h("thead", {}, h("tr", {}, ...head.map((each) => cell("th", each)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((each) => cell("td", each)))))));
}

const STANDS = { pending: ["○", "cut", "waits"], in_progress: ["⏳", "busy", "runs"], complete: ["✓", "good", "done"], error: ["✗", "bad", "failed"] };

function task(block) {
  const [mark, tone, word] = STANDS[block.status] ?? STANDS.pending;
  return h("li", { class: `task is-${tone}` },
    h("span", { class: "task-mark", role: "img", "aria-label": word }, mark),
    h("span", { class: "task-title" }, plain(block.title)),
    ...["details", "output"].filter((key) => block[key]).map((key) => h("span", { class: "task-more" }, richText(block[key]))));
}

const plan = (block) => {
  const tasks = block.tasks ?? [];
  const runs = tasks.some((each) => each.status === "in_progress");
  return h("details", { class: `plan${runs ? " is-busy" : ""}`, open: runs || tasks.some((each) => each.status === "error") },
    h("summary", {}, plain(block.title)), h("ul", {}, ...tasks.map(task)));
};

export function renderBlock(block, press) {
  switch (block.type) {
    case "markdown": return h("div", { class: "md", html: markdown(block.text) });
    case "header": return textNode("h3", "b-header", block.text);
    case "divider": return h("hr");
    case "rich_text": return richText(block);
    case "context": return context(block);
    case "actions": case "context_actions":
      return h("div", { class: "b-actions" }, ...block.elements.map((element) => interactive(element, block.block_id, press)));
    case "section": return h("div", { class: "b-section" },
      h("div", { class: "b-section-text md" },
        block.text ? textNode("div", "prewrap", block.text) : null,
        block.fields ? h("div", { class: "b-fields" }, ...block.fields.map((field) => textNode("div", "", field))) : null),
      block.accessory ? interactive(block.accessory, block.block_id, press) : null);
    case "image": return image(block);
    case "plan": return plan(block);
    case "task_card": return h("ul", { class: "plan" }, task(block));
    case "table": return tableBlock(block);
    case "data_table": return dataTable(block);
    case "data_visualization": return chartBlock(block);
    case "alert": return textNode("div", `b-alert is-${block.level ?? "default"}`, block.text);
    default: return h("div", { class: "muted" }, `[${block.type}]`);
  }
}
