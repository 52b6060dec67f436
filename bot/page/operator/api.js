// Talking to Kortex: the chat API, with the cookie that this page was given.

const TIMEOUT_MS = 30_000;
const AGAIN_MS = 5_000;

export class Refused extends Error {
  constructor(message, status = 0, code = "") { super(message); this.status = status; this.code = code; }
}

let whenSignedOut = () => {};
export const onSignedOut = (act) => { whenSignedOut = act; };

async function ask(method, path, body, more = {}) {
  const headers = { accept: "application/json", ...(body === undefined ? {} : { "content-type": "application/json" }), ...more };
  let response;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch {
    throw new Refused("Kortex does not answer.");
  }
  const told = await response.json().catch(() => null);
  if (response.ok && told !== null) return told;
  if (response.status === 401 && path !== SIGN_IN) whenSignedOut();
  const error = told?.error;
  throw new Refused(error?.message ?? `That did not work (${response.status}).`, response.status, error?.code ?? "");
}

const SIGN_IN = "/page/session";
const q = encodeURIComponent;
const CHAT = "/chat/v1/sessions", API = "/api/v1";

export const api = {
  ways: () => ask("GET", SIGN_IN),
  signIn: (token) => ask("POST", SIGN_IN, { token }),
  signOut: () => ask("DELETE", SIGN_IN),
  me: () => ask("GET", `${API}/me`),
  conversations: () => ask("GET", `${CHAT}?limit=50`),
  conversation: (id) => ask("GET", `${CHAT}/${q(id)}`),
  open: (channel) => ask("POST", CHAT, { channel }),
  ask: (id, text, key) => ask("POST", `${CHAT}/${q(id)}/messages`, { text }, { "idempotency-key": key }),
  stop: (id) => ask("POST", `${CHAT}/${q(id)}/stop`),
  evidence: (id, message, number) => ask("GET", `${CHAT}/${q(id)}/messages/${q(message)}/evidence/${q(number)}`),
  proposals: () => ask("GET", `${API}/proposals`),
  proposal: (id) => ask("GET", `${API}/proposals/${q(id)}`),
  confirm: (id) => ask("POST", `${API}/proposals/${q(id)}/confirm`, {}),
  reject: (id, reason) => ask("POST", `${API}/proposals/${q(id)}/reject`, { reason }),
  activity: () => ask("GET", `${API}/sessions?limit=100`),
  providers: () => ask("GET", `${API}/llm/providers`),
  budget: () => ask("GET", `${API}/budget`),
  tools: () => ask("GET", `${API}/tools`),
  auditRows: (after) => ask("GET", `${API}/audit?after=${q(after)}&limit=50`),
  auditState: () => ask("GET", `${API}/audit/state`),
};

// How the parts do, of whoever listens; null where that cannot be told.
export async function parts() {
  try {
    const response = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    return (await response.json()).parts ?? null;
  } catch {
    return null;
  }
}

const KINDS = ["question", "text", "reset", "tool_start", "tool_end", "notice", "proposal", "claims", "done"];

// Everything of a conversation from its beginning on. The browser resumes by itself behind the last event; what
// was refused is begun anew, after `onStart`. Answers what ends it.
export function follow(session, { onStart, onEvent, onLive }) {
  let source, timer = 0;
  const begin = () => {
    onStart();
    source = new EventSource(`${CHAT}/${q(session)}/events`);
    for (const kind of KINDS) source.addEventListener(kind, (event) => onEvent(kind, JSON.parse(event.data)));
    source.onopen = () => onLive(true);
    source.onerror = () => {
      onLive(false);
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(begin, AGAIN_MS);
      api.me().catch(() => {}); // who is signed out is told so
    };
  };
  begin();
  return () => { clearTimeout(timer); source.close(); };
}
