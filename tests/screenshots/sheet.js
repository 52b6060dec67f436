// Every golden card through the page's own renderer. Sets data-ready on <body> when it is done.

import { h } from "/page/dom.js";
import { messageNode } from "/page/messages.js";
import { names } from "/page/text.js";

const people = await (await fetch("/people.json")).json();
for (const [id, name] of Object.entries(people)) names.users.set(id, name);
const bot = { id: "UBOT", name: "kortex", real_name: "Kortex", is_bot: true };
const context = {
  person: () => bot, press: () => () => {}, replies: () => [], openThread: () => {}, remove: () => {}, canRemove: () => false,
};

for (const [name, parts] of Object.entries(await (await fetch("/cards.json")).json())) {
  const figure = h("figure", {}, h("figcaption", {}, name.replaceAll("_", " ")));
  for (const part of parts) {
    const message = { ts: "1795262400.000100", user: bot.id, text: part.text, blocks: part.blocks };
    figure.append(messageNode(message, context, { inThread: true, continued: true }));
  }
  document.getElementById("sheet").append(figure);
}
document.body.dataset.ready = "yes";
