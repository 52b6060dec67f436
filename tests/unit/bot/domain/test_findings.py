"""What an answer comes to: stated by the closing tool, else read from its words, never surer."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from adapters.llm.messages import StopReason, Usage
from bot.domain.findings import TOOL, findings_of
from bot.domain.turn_events import Evidence, TurnEnd, TurnFinished
from tools.records import ToolInvocationRecord, ToolOutcome

AT = datetime(2026, 11, 20, tzinfo=UTC)
PRODUCTS = ("checkout", "checkout-db", "web")


def outcome(arguments: dict[str, JsonValue], *, ok: bool = True) -> ToolOutcome:
    record = ToolInvocationRecord("t1", TOOL, arguments, ok, None, "", AT, AT, 2, truncated=False)
    return ToolOutcome(record, "{}", "")


def final(text: str, *outcomes: ToolOutcome, seen: bool = True) -> TurnFinished:
    evidence = (Evidence(1, "t0", "core__get_logs", "", True, 1, False, "{}"),) if seen else ()
    return TurnFinished(
        TurnEnd.ANSWERED, text, StopReason.END_TURN, "p", "m", 1, Usage(), 0, outcomes, evidence
    )


STATED: dict[str, JsonValue] = {
    "verdict": "cause",
    "suspects": [
        {
            "product": "web",
            "kind": "cpu",
            "until": "2026-11-20T09:40:00Z",
            "score": 3.5,
            "evidence": ["E1"],
        }
    ],
    "looked_at": ["cpu"],
    "missing": ["traces"],
}


def test_the_closing_statement_counts() -> None:
    found = findings_of(final("checkout is slow", outcome(STATED)), PRODUCTS)

    assert found.verdict == "cause"
    assert [(s.product, s.kind, s.until, s.score, s.evidence) for s in found.suspects] == [
        ("web", "cpu", "2026-11-20T09:40:00Z", 3.5, ("E1",))
    ]
    assert (found.looked_at, found.missing) == (("cpu",), ("traces",))


def test_the_newest_accepted_statement_counts() -> None:
    later = {**STATED, "verdict": "symptoms"}
    refused = outcome({**STATED, "verdict": "healthy"}, ok=False)

    assert (
        findings_of(final("", outcome(STATED), outcome(later), refused), ()).verdict == "symptoms"
    )


def test_words_alone_are_symptoms_in_their_order() -> None:
    found = findings_of(final("Checkout-db fails, so checkout is slow.\n\nweb is fine."), PRODUCTS)

    assert found.verdict == "symptoms"
    assert [s.product for s in found.suspects] == ["checkout-db", "checkout"]
    assert found.missing


@pytest.mark.parametrize("text", ["checkout is broken", "Nothing is wrong."])
def test_words_without_evidence_give_no_findings(text: str) -> None:
    found = findings_of(final(text, seen=False), PRODUCTS)

    assert (found.verdict, found.suspects) == ("unknown", ())


def test_all_clear_is_never_read_from_words() -> None:
    assert findings_of(final("Nothing is wrong."), PRODUCTS).verdict == "unknown"
