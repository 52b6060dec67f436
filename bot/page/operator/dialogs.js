// Dialogs: what was measured, and the question before something is decided.

import { h } from "/page/dom.js";

// Shows it until it is closed; answers with what it was closed with.
export function dialog(title, body, buttons, wide = false) {
  return new Promise((resolve) => {
    const box = h("dialog", { class: `modal${wide ? " is-wide" : " is-small"}`, "aria-labelledby": "dialog-title" });
    const done = (answer) => { box.close(); box.remove(); resolve(answer); };
    box.append(
      h("h2", { id: "dialog-title" }, title),
      h("div", { class: "modal-body", tabindex: "0" }, ...body),
      h("footer", {}, ...buttons.map(({ text, style, answer }) =>
        h("button", { class: `btn is-${style ?? "plain"}`, type: "button", onclick: () => done(answer()) }, text))));
    box.addEventListener("cancel", (event) => { event.preventDefault(); done(null); });
    document.body.append(box);
    box.showModal();
    box.querySelector("textarea, footer button").focus();
  });
}

export const closed = { text: "Close", answer: () => null };
