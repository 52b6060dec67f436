"""The outcome of an answer: its verdict, its suspects, and the coverage of its checks.

Read from the closing statement of the turn (`core__report_findings`). Without one, from the words
of the answer, and then never surer than "symptoms".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import orjson
from pydantic import JsonValue

from bot.domain.turn_events import Evidence, TurnFinished
from tools.contract import PROPOSE_TOOL_ID

TOOL: Final = "core__report_findings"
LOOKS_AT_NOTHING: Final = frozenset({TOOL, PROPOSE_TOOL_ID})  # they repeat the model's own input
Verdict = Literal["cause", "symptoms", "healthy", "unknown"]
_VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
_NOT_STATED: Final = "the answer states no verdict; this comes from its first paragraph"


@dataclass(frozen=True, slots=True)
class Suspect:
    """`since` and `until` are RFC 3339 or empty; empty `until`: it goes on, or is not known. `evidence` are marks such as E3."""

    product: str
    kind: str
    since: str
    score: float
    evidence: tuple[str, ...]
    until: str = ""


def details_of(evidence: Sequence[Evidence]) -> Sequence[str]:
    """What an answer had no room for, from the closing statement among its results."""
    stated = next((one for one in reversed(evidence) if one.tool == TOOL and one.ok), None)
    try:
        result = orjson.loads(stated.content) if stated else None
    except orjson.JSONDecodeError:
        return ()
    return details_in(result)


def details_in(closing: object) -> Sequence[str]:
    """The same from the closing statement's result."""
    if not isinstance(closing, dict):
        return ()
    missing = (f"not checked: {each}" for each in _texts(closing.get("not_looked_at")))
    return [*_texts(closing.get("also_found")), *missing]


@dataclass(frozen=True, slots=True)
class Findings:
    """The outcome of a turn; suspects best first."""

    verdict: Verdict
    suspects: tuple[Suspect, ...]
    looked_at: tuple[str, ...]
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """`verdict`, `suspects`, `coverage` of `kortex ask --json`."""
        return {
            "verdict": self.verdict,
            "suspects": [
                {
                    "product": one.product,
                    "kind": one.kind,
                    "since": one.since or None,
                    "until": one.until or None,
                    "score": one.score,
                    "evidence": list(one.evidence),
                }
                for one in self.suspects
            ],
            "coverage": {"looked_at": list(self.looked_at), "missing": list(self.missing)},
        }


def findings_of(final: TurnFinished, products: Sequence[str]) -> Findings:
    """The outcome of a turn. An answer's text is searched for `products`."""
    for outcome in reversed(final.outcomes):
        if outcome.record.name == TOOL and outcome.record.ok:
            stated = _stated(outcome.record.arguments)
            if stated is not None:
                return stated
    return _of_words(final, products)


def _stated(arguments: Mapping[str, JsonValue]) -> Findings | None:
    verdict = next((v for v in _VERDICTS if v == arguments.get("verdict")), None)
    if verdict is None:
        return None
    rows = arguments.get("suspects")
    return Findings(
        verdict,
        tuple(_suspect(row) for row in rows if isinstance(row, dict))
        if isinstance(rows, list)
        else (),
        _texts(arguments.get("looked_at")),
        _texts(arguments.get("missing")),
    )


def _suspect(row: Mapping[str, JsonValue]) -> Suspect:
    score = row.get("score")
    return Suspect(
        product=str(row.get("product") or ""),
        kind=str(row.get("kind") or ""),
        since=str(row.get("since") or ""),
        score=float(score) if isinstance(score, int | float) else 0.0,
        evidence=_texts(row.get("evidence")),
        until=str(row.get("until") or ""),
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _of_words(final: TurnFinished, products: Sequence[str]) -> Findings:
    looked_at = tuple(dict.fromkeys(one.tool for one in final.evidence if one.ok))
    if not looked_at:
        return Findings("unknown", (), (), ("nothing was checked",))
    first = final.text.strip().partition("\n\n")[0]
    named = sorted((at, name) for name in products if (at := _named_at(first, name)) is not None)
    suspects = tuple(Suspect(name, "", "", 0.0, ()) for _, name in named)
    return Findings("symptoms" if suspects else "unknown", suspects, looked_at, (_NOT_STATED,))


def _named_at(text: str, name: str) -> int | None:
    found = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE)
    return found.start() if found else None
