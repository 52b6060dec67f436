// One hint at a time through the demo: ask, be refused, confirm, see it cured, read the audit log.

const holds = (message, text) => JSON.stringify([message.text, message.blocks]).includes(text);

// Whether Kortex would get a question of this channel.
export const canAsk = (channel) => !channel.is_archived && (channel.kind === "im" || channel.has_bot);

// `messages` are the open thread's, else the channel's: a hint speaks of what is in sight.
// `people` in their order, the first is on call; `wasRefused`: a guest pressed Confirm before.
export function hint({ messages, channel, person, people, isAsked, wasRefused }) {
  const some = (text) => messages.some((each) => holds(each, text));
  const onCall = people.find((each) => !each.is_bot);
  const guest = people.find((each) => each.is_guest);
  if (channel.kind === "im" || !canAsk(channel) || !channel.suggestion || !onCall) return "";
  if (!messages.some((each) => each.thread_ts)) return isAsked ? "" : "Press Enter to ask.";
  const cured = messages.find((each) => holds(each, "It helped"));
  if (cured) {
    const isAskedAgain = messages.some((each) => each.thread_ts && each.ts > cured.ts && people.some((one) => one.id === each.user && !one.is_bot));
    if (!isAskedAgain) return "Fixed. Ask in the thread: is checkout still slow?";
    return "Every step is on record. In a terminal, type .venv/bin/kortex audit verify --demo to verify it and .venv/bin/kortex incident report --demo for the report.";
  }
  const ran = messages.some((each) => holds(each, "Succeeded: ") && Date.now() / 1000 - parseFloat(each.ts) < 300);
  if (ran) return "It ran. If the action names a metric, Kortex checks later whether it helped: in the demo after three minutes.";
  if (some("Succeeded: ") || !some("proposal:confirm")) return "";
  if (person?.is_guest) return wasRefused ? `A guest cannot confirm. Switch back to ${onCall.real_name} under “You are”, and press Confirm.` : "You are a guest now. Press Confirm on the card.";
  if (!wasRefused && guest) return `Who can press Confirm? Switch to ${guest.real_name} (guest) under “You are”, and try it.`;
  return person?.id === onCall.id ? "You are on call: press Confirm." : `Switch to ${onCall.real_name}, who is on call, and press Confirm.`;
}
