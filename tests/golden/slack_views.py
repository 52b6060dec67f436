"""The views and cards with golden files in `tests/golden/blocks`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from adapters.llm.messages import StopReason, Usage
from bot.domain.claims import Claim, ClaimState
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.proposal import Proposal, ProposalState, Vote, canonical, deciders, digest
from bot.domain.turn_events import (
    Evidence,
    Notice,
    RoundStarted,
    TextDelta,
    ToolProgress,
    TurnEnd,
    TurnEvent,
    TurnFinished,
)
from bot.slack.text.blocks import Part
from bot.slack.views.cards import card
from bot.slack.views.render import AnswerView, render
from tools.errors import ToolErrorCode
from tools.records import CallEnded, CallSlow, CallStarted, ToolInvocationRecord, ToolOutcome

TURN = TurnId("turn:T1:C1:1763700000.000100")
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


async def fixed_now() -> datetime:
    """A clock that says `AT`."""
    return AT


def outcome(
    call: str,
    *,
    name: str = "core__get_logs",
    product: str = "checkout",
    summary: str = "42 error lines",
    error: ToolErrorCode | None = None,
    message: str = "",
    latency_ms: int = 87,
    truncated: bool = False,
    cached: bool = False,
) -> ToolOutcome:
    """A finished call about a product."""
    record = ToolInvocationRecord(
        tool_call_id=call,
        name=name,
        arguments={"product": product, "time_range": "last 30m"},
        ok=error is None,
        error_code=error,
        message=message,
        started_at=AT,
        ended_at=AT + timedelta(milliseconds=latency_ms),
        bytes=2_048,
        truncated=truncated,
        cached=cached,
    )
    return ToolOutcome(record, '{"lines": []}', summary if error is None else "")


def finished(**changes: object) -> TurnFinished:
    """An answered turn, with changes."""
    base = TurnFinished(
        end=TurnEnd.ANSWERED,
        text="Checkout fails since **11:42**: the pool is exhausted [E1].",
        stop_reason=StopReason.END_TURN,
        provider="anthropic",
        model="claude-sonnet-5",
        rounds=3,
        usage=Usage(1_000, 500, 0, 200),
        cost_usd_micros=12_345,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def view(events: Sequence[TurnEvent]) -> AnswerView:
    """The view after the events."""
    made = AnswerView(TURN)
    for event in events:
        made.apply(event)
    return made


def started(call: str, name: str = "core__get_logs") -> ToolProgress:
    """A call about checkout begins."""
    return ToolProgress(CallStarted(call, name, {"product": "checkout"}))


def ended(made: ToolOutcome, number: int) -> ToolProgress:
    """A call is over."""
    return ToolProgress(CallEnded(made), number)


FAILURES = (
    outcome("validation", error=ToolErrorCode.VALIDATION, message="since: not a duration"),
    outcome("json", error=ToolErrorCode.INVALID_JSON, message="arguments are not JSON"),
    outcome("timeout", error=ToolErrorCode.TOOL_TIMEOUT, latency_ms=301_000),
    outcome("5xx", error=ToolErrorCode.UPSTREAM, message="upstream: 503"),
    outcome("4xx", error=ToolErrorCode.UPSTREAM, message="upstream: 401 unauthorized"),
    outcome("bug", error=ToolErrorCode.EXECUTION, message="internal error"),
    outcome("shape", error=ToolErrorCode.OUTPUT_INVALID, message="unexpected"),
    outcome("redaction", error=ToolErrorCode.REDACTION_FAILED, message="redaction failed"),
    outcome("unavailable", error=ToolErrorCode.UNAVAILABLE, message="no log backend is configured"),
    outcome("denied", error=ToolErrorCode.POLICY_DENIED, message="not in this channel's toolset"),
    outcome("authz", error=ToolErrorCode.AUTHZ_DENIED, message="only responders may ask"),
    outcome("cut", truncated=True, summary="100 lines"),
    outcome("cut_again", truncated=True, cached=True, summary="100 lines"),
    outcome("cancelled", error=ToolErrorCode.CANCELLED),
)

OUTCOMES = (
    outcome("a"),
    outcome("b", name="core__get_metrics", summary="p99 2.4 s", latency_ms=1_204),
    outcome(
        "c", name="core__get_recent_deploys", error=ToolErrorCode.UPSTREAM, message="upstream: 503"
    ),
    outcome("d", name="mcp__github__search", summary="3 commits", truncated=True),
    outcome("e", name="core__get_traces", summary="12 spans"),
    outcome("f", summary="7 lines & <more>"),
)
EVIDENCE = tuple(Evidence.of(number, made) for number, made in enumerate(OUTCOMES, 1))

PRODUCTS = ("cart", "catalog", "inventory", "payments-db", "recommendations", "shipping")
# An investigation that compares many products: a failure and a cut result among what is not cited.
MANY = tuple(
    outcome(
        str(number),
        name="core__compare_to_baseline",
        product=PRODUCTS[number % len(PRODUCTS)],
        summary="http_request_duration_seconds_p99 within baseline",
        error=ToolErrorCode.UPSTREAM if number == 20 else None,
        message="upstream: 503" if number == 20 else "",
        truncated=number == 25,
        latency_ms=number,
    )
    for number in range(1, 35)
)
MANY_EVIDENCE = tuple(Evidence.of(number, made) for number, made in enumerate(MANY, 1))

LONG = "\n\n".join(
    [f"Paragraph {n}: " + "the pool of checkout is exhausted. " * 12 for n in range(1, 12)]
    + ["```bash\n" + "\n".join(f"echo line {n}" for n in range(400)) + "\n```", "The end."]
)


def _views() -> dict[str, AnswerView]:
    asking = RoundStarted(1, "anthropic", "claude-sonnet-5")
    text = TextDelta("Checkout fails since 11:42")
    slow = ToolProgress(CallSlow("a", "core__get_logs"))
    found = {"outcomes": OUTCOMES, "evidence": EVIDENCE}
    return {
        "placeholder": view([]),
        "looking": view([asking, started("a"), started("b", "core__get_metrics")]),
        "slow": view([asking, started("a"), slow]),
        "failures": view([asking, *(ended(made, n) for n, made in enumerate(FAILURES, 1))]),
        **{f"chip_{made.record.tool_call_id}": view([asking, ended(made, 1)]) for made in FAILURES},
        "many_chips": view([ended(outcome(str(n)), n) for n in range(1, 15)]),
        "many_chips_running": view(
            [
                asking,
                *(started(str(n)) for n in range(1, 12)),
                *(ended(outcome(str(n)), n) for n in range(1, 7)),
                ended(FAILURES[3], 7),
                ToolProgress(CallSlow("11", "core__get_logs")),
            ]
        ),
        "streaming": view(
            [asking, started("a"), ended(OUTCOMES[0], 1), text, Notice("openai took over")]
        ),
        "long_live": view([TextDelta(LONG)]),
        "final_plain": view([finished()]),
        "final_evidence": view(
            [
                finished(
                    **found,
                    claims=(
                        Claim("p99 is 2.41 s [E1].", (1,), ClaimState.SUPPORTED),
                        Claim("42 % fail [E1].", (1,), ClaimState.CONTRADICTED, "not in E1: 42 %"),
                        Claim("It is the deploy.", (), ClaimState.UNCHECKED),
                    ),
                    notices=("anthropic was overloaded; openai answered",),
                )
            ]
        ),
        "final_chart": view([_charted()]),
        "final_triage": view(
            [finished(provider="triage", model="", cost_usd_micros=0, usage=Usage(), **found)]
        ),
        "final_many": view(
            [
                finished(
                    text="The deploy at 12:08 [E1]: slow since 12:09 [E2, E9], not cart [E6] [E2].",
                    outcomes=MANY,
                    evidence=MANY_EVIDENCE,
                )
            ]
        ),
        "rollover_final": view([finished(text=LONG, **found)]),
        "stopped": view([text, finished(end=TurnEnd.STOPPED, text="", **found)]),
        "failed": view([finished(end=TurnEnd.FAILED, text="", cost_usd_micros=None)]),
        "depth": view([finished(end=TurnEnd.DEPTH_EXCEEDED, rounds=8, **found)]),
        "budget": view([finished(end=TurnEnd.BUDGET, text="", rounds=1)]),
        "no_text": view([finished(text="  ")]),
    }


def _charted() -> TurnFinished:
    text = "p99 rose to 1.8 s at 11:33 UTC (normally 0.2 s) [E1]."
    points = (("30", 0.2), ("31", 0.21), ("32", 0.2), ("33", 1.7), ("34", 1.8))
    made = outcome("p", name="core__compare_to_baseline", summary="p99 9.0x baseline, z 14")
    asked = made.record.arguments | {"metric_name": "http_request_duration_seconds_p99"}
    found = {
        "unit": "seconds",
        "baseline_median": 0.2,
        "first_anomaly_at": "2026-11-21T11:33:00Z",
        "samples": [{"ts": f"2026-11-21T11:{at}:00Z", "value": value} for at, value in points],
    }
    made = replace(made, record=replace(made.record, arguments=asked), content=json.dumps(found))
    claim = Claim(text, (1,), ClaimState.SUPPORTED)
    return finished(text=text, outcomes=(made,), evidence=(Evidence.of(1, made),), claims=(claim,))


VOTES = (
    Vote(UserId("U3"), AT + timedelta(minutes=1), "k1"),
    Vote(UserId("U2"), AT + timedelta(minutes=2), "k2"),
)


def proposal(state: ProposalState = ProposalState.PENDING, **changes: object) -> Proposal:
    """A proposal to roll checkout back, with changes."""
    params = canonical({"version": "1.4.2", "reason": "pool <exhausted> & `slow`"})
    decided = state not in {ProposalState.PENDING, ProposalState.EXPIRED, ProposalState.SUPERSEDED}
    base = Proposal(
        id=ProposalId("prop_01JD"),
        session_id=SessionId("s1"),
        turn_id=TURN,
        place=Place(TeamId("T1"), ChannelId("C1"), MessageTs("1763700000.000100")),
        asked_by=Person(TeamId("T1"), UserId("U1")),
        action="rollback-deploy",
        product="checkout",
        params=params,
        digest=digest("rollback-deploy", "checkout", params),
        rationale="Errors began with 1.4.3.\n\n\n\n✅ approved by CTO <!channel>\u202e",
        model_blast_radius="one service",
        blast_radius="one service",
        reversible=True,
        untrusted_read=True,
        confirm_roles=("responder",),
        four_eyes=True,
        state=state,
        created_at=AT,
        expires_at=AT + timedelta(minutes=10),
        decided_by=UserId("U2") if decided else None,
        decided_at=AT + timedelta(minutes=2) if decided else None,
        reason="not during the sale" if state is ProposalState.REJECTED else "",
        outcome='{"status":"rolled back"}' if state is ProposalState.SUCCEEDED else "",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def _cards() -> dict[str, Part]:
    made = {f"card_{state}": card(proposal(state), "responder", AT) for state in ProposalState}
    changed = {
        "card_past_its_time": (proposal(), AT + timedelta(minutes=10)),
        "card_too_long": (proposal(params=canonical({"script": "x" * 3_000})), AT),
        "card_votes_one_of_two": (proposal(approvals=2, votes=VOTES[:1]), AT),
        "card_edited": (
            proposal(
                supersedes="prop_01JC", confirm_dialog=True, params=canonical({"a": "\u202eb"})
            ),
            AT,
        ),
        "card_edited_away": (
            proposal(
                ProposalState.SUPERSEDED,
                decided_by=UserId("U2"),
                decided_at=AT + timedelta(minutes=1),
            ),
            AT,
        ),
        "card_votes_none_yet": (proposal(approvals=3, four_eyes=False), AT),
        "card_votes_running": (
            proposal(ProposalState.DISPATCHING, approvals=2, votes=VOTES, decided_by=VOTES[1].by),
            AT,
        ),
        "card_irreversible": (
            proposal(reversible=False, untrusted_read=False, four_eyes=False),
            AT,
        ),
        "card_rehearsed": (
            proposal(
                preview='{"from":"1.4.3","to":"1.4.2"}', objects=3, object_names=("web-1", "web-2")
            ),
            AT,
        ),
        "card_refused": (
            proposal(
                ProposalState.FAILED,
                outcome='{"error":"not sent, nothing was changed: rate limit 3/1h: it has run that '
                'often already","guard":"rate_limit"}',
            ),
            AT,
        ),
        "card_answer_lost": (
            proposal(
                ProposalState.UNKNOWN,
                outcome='{"error":"no answer within 30 s","check":"the control plane, key p_1"}',
            ),
            AT,
        ),
        "card_progress": (
            proposal(ProposalState.DISPATCHING, outcome='{"progress":"2 of 3 hosts are done"}'),
            AT,
        ),
        "card_outdated": (
            proposal(
                ProposalState.SUPERSEDED,
                decided_by=UserId("U2"),
                decided_at=AT + timedelta(minutes=2),
                outcome='{"error":"config_hash was a1, is b2","guard":"drift"}',
            ),
            AT,
        ),
    }
    both = proposal(action_roles=("on-call", "sre-lead"))
    made["card_two_kinds_of_roles"] = card(both, deciders(both), AT)
    made["card_nobody_may"] = card(proposal(confirm_roles=()), "", AT)
    return made | {name: card(each, "responder", now) for name, (each, now) in changed.items()}


def golden() -> dict[str, tuple[Part, ...]]:
    """The messages of every golden file, by its name."""
    views = {name: render(each) for name, each in _views().items()}
    return views | {name: (each,) for name, each in _cards().items()}


def as_json(parts: Sequence[Part]) -> str:
    """What a golden file holds."""
    return json.dumps([asdict(part) for part in parts], indent=1, ensure_ascii=False) + "\n"
