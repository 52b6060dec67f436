// Talking to the workspace: requests as a person, and the live feed.

async function ask(path, body) {
  const request = body === undefined
    ? {}
    : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(`/person/${path}`, request);
  } catch {
    throw new Error("The workspace does not answer. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `That did not work (${response.status}).`);
  return answer;
}

const q = encodeURIComponent;

export const client = {
  workspace: (user) => ask(`workspace?user=${q(user)}`),
  channel: (channel, user) => ask(`channels/${q(channel)}?user=${q(user)}`),
  say: (body) => ask("messages", body),
  remove: (body) => ask("deletions", body),
  click: (body) => ask("clicks", body),
  stop: (body) => ask("stops", body),
  command: (body) => ask("commands", body),
  openHome: (user) => ask("homes", { user }),
  press: (view, body) => ask(`views/${q(view)}/actions`, body),
  submit: (view, body) => ask(`views/${q(view)}/submission`, body),
  dismiss: (view, user) => ask(`views/${q(view)}/closing`, { user }),
  archive: (channel, archived) => ask(`channels/${q(channel)}/archive`, { archived }),
  removeBot: (channel) => ask(`channels/${q(channel)}/bot-removal`, {}),
  inviteBot: (channel) => ask(`channels/${q(channel)}/bot-invitation`, {}),
  providers: () => ask("providers"),
  choose: (id) => ask("provider", { id }),
};

export function follow(user, onChange, onState) {
  const feed = new EventSource(`/person/feed?user=${q(user)}`);
  feed.onmessage = (event) => onChange(JSON.parse(event.data));
  feed.onopen = () => onState(true);
  feed.onerror = () => onState(false);
  return () => feed.close();
}
