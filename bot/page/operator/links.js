// Links that lead away from the page.

import { h } from "/page/dom.js";
import { visible } from "/page/words.js";

// A thread on its chat platform, by its name; its name alone where it has no address.
export const threadLink = (name, url) => /^https?:\/\//.test(url ?? "")
  ? h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(name)) : h("span", {}, visible(name));
