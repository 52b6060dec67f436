// Links that lead away from the page. In an answer, only links to the hosts of [slack] link_hosts are live:
// a link that a model writes can carry data out.

import { h } from "/page/dom.js";
import { liveLinks } from "/page/text.js";
import { visible } from "/page/words.js";

// A thread on its chat platform, by its name; its name alone where it has no address.
export const threadLink = (name, url) => /^https?:\/\//.test(url ?? "")
  ? h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(name)) : h("span", {}, visible(name));

const hosts = new Set();

export function allowHosts(names) {
  hosts.clear();
  for (const name of names) hosts.add(name.toLowerCase());
}

// The rules of Slack's answers (bot/slack/text/links.py): http(s), a listed host, no user, nothing read twice.
function isAllowed(url) {
  if (!hosts.size || !/^[\x21-\x7e]+$/.test(url) || url.includes("\\")) return false;
  try {
    const parts = new URL(url);
    return /^https?:$/.test(parts.protocol) && !parts.username && !parts.password && !/^[a-z]+:\/\/[^/?#]*@/i.test(url) && hosts.has(parts.hostname);
  } catch {
    return false;
  }
}

liveLinks.allows = isAllowed;
