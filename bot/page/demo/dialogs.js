// Modals that the app opened: inputs, submission, errors beside their inputs.

import { client } from "/page/client.js";
import { plain, renderBlock } from "/page/blocks.js";
import { h } from "/page/dom.js";

const open = new Map(); // view id → dialog

function choices(element, name, type, initial) {
  return h("div", { class: "choices" }, ...element.options.map((option) =>
    h("label", {}, h("input", { type, name, value: option.value, checked: initial.includes(option.value) }), plain(option.text.text))));
}

function input(element, id) {
  const common = { id, name: element.action_id, placeholder: element.placeholder?.text, "aria-describedby": `${id}-hint` };
  const limits = { maxlength: element.max_length && String(element.max_length), minlength: element.min_length && String(element.min_length) };
  switch (element.type) {
    case "plain_text_input":
      return element.multiline
        ? h("textarea", { ...common, ...limits, rows: "4" }, element.initial_value ?? "")
        : h("input", { ...common, ...limits, type: "text", value: element.initial_value });
    case "number_input": return h("input", { ...common, type: "number", step: element.is_decimal_allowed ? "any" : "1", value: element.initial_value });
    case "email_text_input": return h("input", { ...common, type: "email", value: element.initial_value });
    case "url_text_input": return h("input", { ...common, type: "url", value: element.initial_value });
    case "static_select":
      return h("select", common, h("option", { value: "" }, "Choose…"),
        ...element.options.map((option) => h("option", { value: option.value, selected: option.value === element.initial_option?.value }, plain(option.text.text))));
    case "radio_buttons": return choices(element, element.action_id, "radio", [element.initial_option?.value]);
    case "checkboxes": return choices(element, element.action_id, "checkbox", (element.initial_options ?? []).map((option) => option.value));
    default: return h("input", { ...common, type: "text" });
  }
}

function inputBlock(block) {
  const id = `in-${block.block_id}`;
  const field = input(block.element, id);
  if (!block.optional && "required" in field) field.required = true;
  return h("div", { class: "input", "data-block": block.block_id },
    h("label", { for: id }, plain(block.label.text), block.optional ? h("span", { class: "muted" }, " (optional)") : null),
    field,
    h("p", { class: "input-hint", id: `${id}-hint` }, block.hint ? plain(block.hint.text) : ""),
    h("p", { class: "trouble", role: "alert", hidden: true }));
}

function showErrors(form, errors) {
  for (const node of form.querySelectorAll("[data-block] .trouble")) {
    const text = errors[node.parentElement.dataset.block];
    node.hidden = !text;
    node.textContent = text ?? "";
  }
}

export function closeView(id) {
  open.get(id)?.remove();
  open.delete(id);
}

export function closeAll() {
  [...open.keys()].forEach(closeView);
}

export function showView(view, user) {
  const known = open.get(view.id);
  const dialog = known ?? h("dialog", { class: "modal" });
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const fail = (error) => { trouble.hidden = false; trouble.textContent = error.message; };
  const press = (element, chosen) => client.press(view.id, { user, action_id: element.action_id, chosen }).catch(fail);
  const dismiss = () => client.dismiss(view.id, user).catch(() => closeView(view.id));
  const form = h("form", { method: "dialog" },
    h("div", { class: "modal-body" }, ...view.blocks.map((block) => block.type === "input" ? inputBlock(block) : renderBlock(block, press)), trouble),
    h("footer", {},
      h("button", { class: "btn", type: "button", onclick: dismiss }, plain(view.close?.text ?? (view.submit ? "Cancel" : "Close"))),
      view.submit ? h("button", { class: "btn is-primary" }, plain(view.submit.text)) : null));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    try {
      const { answer } = await client.submit(view.id, { user, values });
      showErrors(form, answer?.errors ?? {});
    } catch (error) { fail(error); }
  });
  dialog.oncancel = (event) => { event.preventDefault(); dismiss(); };
  dialog.replaceChildren(h("h2", {}, plain(view.title?.text ?? "")), form);
  if (!known) {
    open.set(view.id, dialog);
    document.body.append(dialog);
    dialog.showModal();
  }
}
