"""A proposal as a card: what would run, read from the stored record, and who may decide.

The order of the blocks is fixed. The proposer's words come last, boxed and labelled. A card that
cannot show the arguments whole has no Confirm button.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from bot.domain.change import left_open, named, outcome_words, values
from bot.domain.ids import Place, ProposalId
from bot.domain.proposal import Proposal, ProposalState, became, is_rehearsal, sign, title
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.delivery.outbox import Outbox
from bot.slack.roles.directory import NOT_PAGED, Paged
from bot.slack.text.blocks import Block, Part, actions, button, context, dialog, header, section
from bot.slack.text.limits import SECTION_CHARS
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import BROADCAST, INVISIBLE, escape, escape_within, inline, visible

_log = structlog.stdlib.get_logger(__name__)
CONFIRM_ACTION = "proposal:confirm"
EDIT_ACTION = "proposal:edit"
REJECT_ACTION = "proposal:reject"
RAW_ACTION = "proposal:raw"
_NAME_CHARS = 200
_HEADLINE_CHARS = 120  # with the words before it within the 150 of a header
_RATIONALE_CHARS = 600
_RATIONALE_LINES = 6
_WARNING_CHARS = 400
_OUTCOME_CHARS = 1_500
_DIGEST_CHARS = 12
_MOST_PAGED = 5


def card(
    proposal: Proposal, roles_text: str, now: datetime, paged: Paged = NOT_PAGED, warning: str = ""
) -> Part:
    """The card as it is now. `roles_text` names the roles that may decide.

    `paged` are mentioned while the card is open; Slack notifies them only of a new message.
    `warning` is plain text below the arguments.
    """
    proposal = _as_of(proposal, now)
    arguments = _shown("Arguments", proposal.params)
    if arguments is not None and (chosen := left_open(proposal)):
        arguments = f"{arguments}: {chosen}"
    preview = _shown("Dry run", proposal.preview)
    confirmable = arguments is not None and preview is not None and _shown_whole(proposal)
    raw = button("Raw JSON", RAW_ACTION, proposal.id)
    blocks: list[Block] = [header(_headline(proposal))]
    blocks.append(section(_what(proposal)))
    blocks.append(section(arguments or "*Arguments*\nnot shown") | {"accessory": raw})
    if warning:
        blocks.append(section(f"⚠ {remark(visible(warning), _WARNING_CHARS)}"))
    if proposal.preview:
        blocks.append(section(preview or "*Dry run*\nnot shown"))
    if not confirmable:
        blocks.append(section(_TOO_LONG))
    blocks.append(section(_facts(proposal)))
    blocks += [context(_UNTRUSTED)] if proposal.untrusted_read else []
    blocks.append(section(_proposers_words(proposal)))
    blocks += _ending(proposal, roles_text, paged, confirmable=confirmable)
    digest = inline(proposal.digest[:_DIGEST_CHARS], 20)
    blocks.append(context(f"Proposal `{inline(proposal.id, 60)}` · digest `{digest}`"))
    return Part(inline(_headline(proposal), 2 * _HEADLINE_CHARS), tuple(blocks))


_UNTRUSTED = (
    "⚠ Based on tool output such as logs, which can be forged. Check the facts above, not the words "
    "below."
)
_TOO_LONG = (
    "⚠ This is too long to show whole, so the proposal cannot be confirmed. "
    "Ask for a smaller change."
)


def _as_of(proposal: Proposal, now: datetime) -> Proposal:
    """The row as it is now: past its time it has expired, whether or not the clock has said so."""
    late = proposal.state is ProposalState.PENDING and now >= proposal.expires_at
    return replace(proposal, state=ProposalState.EXPIRED) if late else proposal


def _shown_whole(proposal: Proposal) -> bool:
    names = (visible(proposal.action), visible(proposal.product))
    return all(len(escape(name)) <= _NAME_CHARS for name in names)


def _what(proposal: Proposal) -> str:
    action = escape_within(visible(proposal.action), _NAME_CHARS)
    product = escape_within(visible(proposal.product), _NAME_CHARS)
    return f"*Action*  {_mono(action)}\n*Product*  {_mono(product)}"


def _mono(escaped: str) -> str:
    return f"`{escaped.replace('`', '´')}`"


def _headline(proposal: Proposal) -> str:
    what = visible(named(proposal))
    what = what if len(what) <= _HEADLINE_CHARS else f"{what[: _HEADLINE_CHARS - 1]}…"
    asked = "?" if proposal.state is ProposalState.PENDING else ""
    return f"{title(proposal.state, rehearsal=is_rehearsal(proposal))}: {what}{asked}"


def _shown(label: str, text: str) -> str | None:
    if text == "{}":
        return f"*{label}*  none"
    found = values(text) if text else None
    if found:
        lines = "\n".join(f"• {name}: `{_within_code(value)}`" for name, value in found)
        block = f"*{label}*\n{lines}"
        if len(block) <= SECTION_CHARS:
            return block
    return _json_block(label, text)


def _within_code(text: str) -> str:
    shown = BROADCAST.sub(r"\\u0040", text.replace("`", r"\u0060"))
    return escape(INVISIBLE.sub(_json_escape, shown))


def _json_block(label: str, text: str) -> str | None:
    """The canonical JSON whole under its label, or None when it does not fit.

    Characters that would show as nothing, end the code block or look like a mention are written as
    JSON escapes: still the same JSON value.
    """
    block = f"*{label}*\n```\n{_within_code(text)}\n```"
    return block if len(block) <= SECTION_CHARS else None


def _json_escape(sign: re.Match[str]) -> str:
    # JSON writes characters above the first plane as a surrogate pair.
    units = sign.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _facts(proposal: Proposal) -> str:
    reversible = "yes" if proposal.reversible else "*no*"
    four_eyes = "\n*Four eyes*  the asker cannot confirm" if proposal.four_eyes else ""
    asked = "Edited and proposed again by" if proposal.supersedes else "Asked by"
    asker = _person(proposal.asked_by.user) if proposal.asked_by.is_somebody else "an alert"
    several = f"\n*Needs*  {proposal.approvals} different people" if proposal.approvals > 1 else ""
    return (
        f"*Blast radius*  at most {inline(proposal.blast_radius, 100)} (the limit of this action)\n"
        f"{_objects(proposal)}"
        f"*Reversible*  {reversible}\n"
        f"*{asked}*  {asker}{four_eyes}{several}"
    )


def _objects(proposal: Proposal) -> str:
    if proposal.objects is None:
        return ""
    names = ", ".join(_mono(inline(visible(name), 80)) for name in proposal.object_names)
    more = proposal.objects - len(proposal.object_names)
    told = f": {names}" if names else ""
    return (
        f"*Touches*  {proposal.objects}{told}{f' and {more} more' if names and more > 0 else ''}\n"
    )


def _proposers_words(proposal: Proposal) -> str:
    claim = remark(visible(proposal.model_blast_radius), 100) or "none given"
    text = visible(proposal.rationale)
    lines = [line.strip() for line in text.split("\n") if line.strip()][:_RATIONALE_LINES]
    quoted = "\n".join(f"> {line}" for line in _within(lines, _RATIONALE_CHARS)) or "> none given"
    what = "this was proposed before it was edited" if proposal.supersedes else "this was proposed"
    return f"_Why {what} (not verified):_\n{quoted}\n> Blast radius claimed: {claim}"


def _within(lines: Sequence[str], max_chars: int) -> Iterator[str]:
    """The lines as mrkdwn, as far as there is room for them together."""
    for line in lines:
        if max_chars < 2:
            return
        said = remark(line, max_chars)
        max_chars -= len(said)
        yield said


def _ending(proposal: Proposal, roles_text: str, paged: Paged, *, confirmable: bool) -> list[Block]:
    if proposal.state is ProposalState.PENDING:
        return _open(proposal, roles_text, paged, confirmable=confirmable)
    lines = [_decision(proposal)]
    if proposal.outcome and proposal.state in _WITH_OUTCOME:
        outcome = escape_within(
            visible(outcome_words(proposal.outcome)).replace("`", "´"), _OUTCOME_CHARS
        )
        lines.append(f"```\n{outcome}\n```")
    return [section("\n".join(lines))]


_WITH_OUTCOME = {
    ProposalState.DISPATCHING,
    ProposalState.SUCCEEDED,
    ProposalState.FAILED,
    ProposalState.UNKNOWN,
    ProposalState.SUPERSEDED,
}


def _open(proposal: Proposal, roles_text: str, paged: Paged, *, confirmable: bool) -> list[Block]:
    who = inline(roles_text, 300) or "no one: this channel's rule has no `confirm` role"
    reject = button("Reject", REJECT_ACTION, proposal.id, "danger")
    edit = button("Edit", EDIT_ACTION, proposal.id)
    confirm = button("Confirm", CONFIRM_ACTION, proposal.id, "primary")
    if proposal.confirm_dialog:
        chosen = left_open(proposal)
        given = f"without arguments: {chosen}" if chosen else "with the arguments on the card"
        confirm["confirm"] = _last_question(proposal, given)
    called = "".join(f" {_mention(one)}" for one in paged.ids[:_MOST_PAGED]) if roles_text else ""
    lines = [f"*Can decide*  {who}{called}", *_progress(proposal)]
    if paged.unread and roles_text:
        lines.append(paged.unread)
    told = section("\n".join((*lines, f"*Expires*  {_time(proposal.expires_at)}")))
    if not roles_text:
        return [told]  # each button could only refuse
    return [told, actions([confirm, edit, reject] if confirmable else [edit, reject])]


def _last_question(proposal: Proposal, given: str) -> Block:
    action, product = visible(proposal.action), visible(proposal.product)
    if is_rehearsal(proposal):
        told = f"{action} is rehearsed for {product}, {given}. Nothing is sent."
        return dialog(f"Rehearse {action}?", told, "Rehearse it")
    return dialog(f"Run {action}?", f"{action} runs on {product} at once, {given}.", "Run it")


def _progress(proposal: Proposal) -> list[str]:
    if proposal.approvals == 1:
        return []
    count = f"*Confirmations*  {len(proposal.votes)} of {proposal.approvals}"
    return [count, *(f"• {_person(vote.by)} at {_time(vote.at)}" for vote in proposal.votes)]


def _decision(proposal: Proposal) -> str:
    said = became(proposal, _deciders(proposal))
    reason = f"\n*Reason*  {remark(visible(proposal.reason), 500)}" if proposal.reason else ""
    signs = f"{_COLOURS.get(proposal.state, '')}{sign(proposal.state)}"
    return f"{signs} {said[0].upper()}{said[1:]}.{_NEXT.get(proposal.state, '')}{reason}"


_COLOURS = {ProposalState.FAILED: "🔴 ", ProposalState.UNKNOWN: "🟡 "}
_NEXT = {ProposalState.UNKNOWN: " It was not sent again. Check the target before you try again."}


def _deciders(proposal: Proposal) -> str:
    if proposal.state is ProposalState.EXPIRED:
        return f" at {_time(proposal.expires_at)}"
    rejected = proposal.state is ProposalState.REJECTED
    edited = proposal.state is ProposalState.SUPERSEDED and not proposal.outcome
    if proposal.votes and not rejected and not edited:
        given = ", ".join(f"{_person(vote.by)} at {_time(vote.at)}" for vote in proposal.votes)
        return f" by {given}"
    at = f" at {_time(proposal.decided_at)}" if proposal.decided_at else ""
    return f" by {_person(proposal.decided_by)}{at}" if proposal.decided_by else ""


def _person(user: str) -> str:
    # The one mention we mean: ids come from Slack itself and are letters and digits.
    return f"<@{user}>" if user.isascii() and user.isalnum() else inline(user, 60)


def _mention(paged: str) -> str:
    is_group = paged.startswith("S") and paged.isascii() and paged.isalnum()
    return f"<!subteam^{paged}>" if is_group else _person(paged)


def _time(at: datetime) -> str:
    return f"{at:%H:%M} UTC, {at:%d %b}"


# As `bot.domain.proposal.proposal_id` makes them.
_PROPOSAL_ID: Final = re.compile(r"(?<![0-9A-Za-z])p_[0-9a-f]{24}(?![0-9A-Za-z])")
_CARD_LINK: Final = re.compile(r"https://[^\s<>|]{1,500}")
_MOST_LINKED: Final = 3  # as many as a conversation may have open
# The answer waits for it: rather the id alone than a late answer.
_LINKS_S: Final = 2.0
_LINK_NAME_CHARS: Final = 100


Stored = Callable[[ProposalId], Awaitable[Proposal | None]]


async def nothing_stored(_proposal: ProposalId) -> None: ...


@dataclass(slots=True, eq=False, repr=False)
class OpenCards:
    """`stored` reads one proposal, `now` the clock it lives by; both may raise StorageUnavailable."""

    outbox: Outbox
    stored: Stored
    now: Callable[[], Awaitable[datetime]]
    patience_s: float = _LINKS_S

    async def lines(self, text: str, place: Place) -> Sequence[str]:
        """One line of mrkdwn for each open proposal of that channel that the text names by id.

        Never raises; a card that is not found in time has no line.
        """
        named = list(dict.fromkeys(_PROPOSAL_ID.findall(text)))[:_MOST_LINKED]
        told: list[str] = []
        try:
            async with asyncio.timeout(self.patience_s):
                for each in named:
                    told += await self._line(ProposalId(each), place)
        except (StorageUnavailable, SurfaceFailed, SurfaceGone, TimeoutError) as error:
            _log.info("slack.card.not_linked", error=str(error) or "no answer in time")
        return told

    async def _line(self, proposal_id: ProposalId, place: Place) -> Sequence[str]:
        proposal = await self.stored(proposal_id)
        if proposal is None or _channel(proposal.place) != _channel(place):
            return ()
        if proposal.state is not ProposalState.PENDING or not proposal.card_ts:
            return ()
        if proposal.expires_at <= await self.now():
            return ()
        link = await self.outbox.permalink(place.channel, proposal.card_ts)
        if not _CARD_LINK.fullmatch(link):
            return ()
        action, product = (
            inline(each, _LINK_NAME_CHARS) for each in (proposal.action, proposal.product)
        )
        return (f"Open proposal: {action} of {product}, <{link}|its card>",)


def _channel(place: Place) -> tuple[str, str]:
    return (place.team, place.channel)
