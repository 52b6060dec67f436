"""Output of `kortex chat`: growing answers, evidence, charts in characters, whole proposals.

Text from models, logs and people is made inert first: no terminal sequence of theirs is printed.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson
from pydantic import JsonValue

from bot.cli.display import Markup
from bot.domain.change import outcome_words
from bot.domain.charted import charts_of
from bot.domain.turn_events import Evidence
from bot.slack.text.mrkdwn import clean, visible
from bot.slack.views.charts import plotted
from bot.slack.views.tool_chips import short
from bot.web.api import models

_DIM: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_WARN: Final = "\x1b[33m"
_PLAIN: Final = "\x1b[0m"
_MOST_CHARTS: Final = 3
_MOST_CHARS: Final = 8_000  # of a result; the API has all of it
_STATES: Final = (
    ("supported", "supported"),
    ("contradicted", "contradicted"),
    ("unchecked", "not checked"),
)


@dataclass(slots=True)
class Screen:
    """`write` takes text as it is to appear; `colour` is off for pipes and NO_COLOR."""

    write: Callable[[str], None]
    colour: bool = False
    _markup: Markup = field(default_factory=Markup)
    _shown: str = ""  # of the answer so far, tools and notes beside it left out
    _round: str = ""  # the newest part of it, with nothing beside it
    _in_line: bool = False  # its last line has no end yet
    _claims: Sequence[models.Claim] = ()  # sent just before the end of their answer

    def line(self, text: str = "") -> None:
        self._end_text()
        self._round = ""
        self.write(f"{text}\n")

    def note(self, text: str) -> None:
        self.line(self._in(_DIM, clean(text)))

    def warn(self, text: str) -> None:
        self.line(self._in(_WARN, clean(text)))

    def event(self, event: models.Event) -> None:
        match event:
            case models.TextEvent():
                self._grow(event.text)
            case models.ResetEvent():
                self._end_text()
                self.note("(ignore the text above)")
                self._shown = ""
                self._grow(event.text)
            case models.ToolEndEvent():
                self.note(_call(event))
            case models.NoticeEvent():
                self.note(event.text)
            case models.ProposalEvent():
                what = event.effect or f"{event.action} for {event.product}"
                self.warn(f"Proposal {event.proposal_id}: {what}, {event.status or event.state}")
            case models.ClaimsEvent():
                self._claims = event.claims
            case models.DoneEvent():
                self._done(event)
            case models.QuestionEvent() | models.ToolStartEvent():
                pass

    def answered(self, message: models.Message) -> None:
        self.line()
        self.line(self._in(_BOLD, f"{clean(message.asker)}: {clean(message.question)}"))
        self._answer(f"{clean(message.text)}\n")

    def evidence(self, found: models.Evidence) -> None:
        self.line(
            self._in(_BOLD, f"{found.number} {clean(short(found.tool))}: {clean(found.summary)}")
        )
        for chart in charts_of(_evidence(found), {})[:_MOST_CHARTS]:
            self.line(clean(plotted(chart)))
        content = _indented(found.content)
        self.line(clean(content[:_MOST_CHARS]))
        if len(content) > _MOST_CHARS:
            self.note(f"... {len(content) - _MOST_CHARS} more characters")

    def proposal(self, row: models.Proposal) -> None:
        """Print everything that a card shows; it is what runs."""
        self.line()
        what = row.effect or f"{row.action} for {row.product}"
        self.line(self._in(_BOLD, visible(f"{what}: {row.status or row.state}")))
        for name, value in _facts(row):
            self.line(f"  {name}: {value}")
        if row.warning:
            self.warn(f"  {visible(row.warning)}")
        if row.untrusted_read:
            self.warn("  Based on tool output such as logs, which can be forged.")

    def _grow(self, text: str) -> None:
        safe = clean(text)
        self._shown += safe
        self._round += safe
        self._in_line = not (safe or "\n").endswith("\n")
        self._answer(safe)

    def _answer(self, text: str) -> None:
        bold, plain = (_BOLD, _PLAIN) if self.colour else ("", "")
        self.write(self._markup.rendered(text, bold, plain))

    def _end_text(self) -> None:
        if self._in_line:
            self._answer("\n")
        self._in_line = False

    def _doubts(self) -> None:
        for claim in self._claims:
            if claim.note:
                cited = f" [{', '.join(claim.evidence)}]" if claim.evidence else ""
                self.warn(f'! "{claim.text}"{cited}: {claim.note}')
        counts: Counter[str] = Counter(claim.state for claim in self._claims)
        told = [f"{counts[state]} {words}" for state, words in _STATES if counts[state]]
        if told:
            self.note(f"statements: {', '.join(told)}")
        self._claims = ()

    def _done(self, event: models.DoneEvent) -> None:
        whole = clean(event.text)
        if not _letters(self._shown).endswith(_letters(whole)):
            self._complete(whole)
        self._end_text()
        self._shown = ""
        self._doubts()
        for line in event.evidence:
            self.note(f"{line.number} {short(line.tool)}: {line.summary}")
        for notice in event.notices:
            self.note(notice)
        if event.verdict:
            self.note(f"verdict: {event.verdict}")
        self.note(f"{event.provider} {event.model}, {event.end}{_cost(event)}")

    def _complete(self, whole: str) -> None:
        for grown in (self._shown, self._round) if self._round else ():
            if (rest := _rest(grown, whole)) is not None:
                self._grow(rest)
                return
        self._end_text()
        self._round = ""
        self._answer(f"{whole}\n")

    def _in(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self.colour else text


def _letters(text: str) -> str:
    return "".join(text.split())


def _rest(shown: str, whole: str) -> str | None:
    if not _letters(whole).startswith(_letters(shown)):
        return None
    letters = len(_letters(shown))
    seen = 0
    for at, letter in enumerate(whole):
        if seen == letters:
            return whole[at:].lstrip() if shown[-1:].isspace() else whole[at:]
        seen += not letter.isspace()
    return ""


def _call(event: models.ToolEndEvent) -> str:
    if not event.ok:
        return f"x {short(event.tool)}: {event.message or event.error_code}"
    cut = ", cut" if event.truncated else ""
    return (
        f"{event.evidence or '-'} {short(event.tool)}: {event.summary} ({event.latency_ms} ms{cut})"
    )


def _cost(event: models.DoneEvent) -> str:
    spent = event.cost_usd_micros
    return f", ${spent / 1e6:.4f}" if spent else ""


def _facts(row: models.Proposal) -> list[tuple[str, str]]:
    """Names and values of a proposal, without the empty ones.

    Invisible characters are shown. What is no list of names and values is JSON, as stored: a number may
    be longer than a float here.
    """
    stored = row.as_stored
    told: list[tuple[str, JsonValue]] = [
        ("id", row.id),
        ("action", row.action),
        ("product", row.product),
        ("arguments", _pairs(row.arguments, stored.params if stored else row.params)),
        ("why", row.rationale),
        ("may touch", row.blast_radius),
        ("the model expects", row.model_blast_radius),
        ("touches", ", ".join(row.touches)),
        ("dry run", _pairs(row.preview, row.dry_run)),
        ("can be undone", "yes" if row.reversible else "no"),
        ("asked by", row.asked_by),
        ("may be confirmed by", ", ".join(row.may_confirm) or "nobody"),
        ("who must also hold", ", ".join(row.must_also_hold)),
        ("not by who asked", "yes" if row.four_eyes else ""),
        ("confirmations", _confirmations(row)),
        ("decided by", row.decided_by),
        ("reason", row.reason),
        ("outcome", outcome_words(stored.outcome).replace("\n", "; ") if stored else row.outcome),
        ("open until", f"{row.expires_at:%H:%M:%S} UTC"),
    ]
    return [(name, _told(value)) for name, value in told if value not in ("", None)]


def _pairs(pairs: Sequence[tuple[str, str]] | None, stored: JsonValue) -> JsonValue:
    return stored if pairs is None else ", ".join(map(" ".join, pairs))


def _confirmations(row: models.Proposal) -> str:
    """Of one that is open: a decision counts its own people no more."""
    return f"{len(row.confirmed_by)} of {row.approvals}" if row.state == "pending" else ""


def _told(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text)


def _indented(content: str) -> str:
    try:
        return orjson.dumps(orjson.loads(content), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return content


def _evidence(found: models.Evidence) -> Evidence:
    number = int(found.number.removeprefix("E") or 0)
    return Evidence(
        number, found.tool_call_id, found.tool, found.summary, found.ok,
        found.latency_ms, found.truncated, found.content,
    )  # fmt: skip
