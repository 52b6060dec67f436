"""Records of rounds and calls read back unchanged, through JSON text."""

import json
from datetime import UTC, datetime, timedelta

import orjson
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import ToolCall, Usage
from bot.chat.round_record import (
    RoundRecord,
    outcome_from_json,
    outcome_to_json,
    round_from_json,
    round_to_json,
    without_raw,
)
from tools.errors import ToolErrorCode
from tools.records import ToolInvocationRecord, ToolOutcome

NO_SURROGATES = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.integers(0, 2**53)


@given(
    st.builds(
        RoundRecord,
        text=NO_SURROGATES,
        provider=NO_SURROGATES,
        model=NO_SURROGATES,
        error_message=NO_SURROGATES,
        number=COUNTS,
        usage=st.builds(Usage),
        cost_usd_micros=st.none() | COUNTS,
        tool_calls=st.tuples(st.builds(ToolCall, NO_SURROGATES, NO_SURROGATES, NO_SURROGATES)),
        provider_blocks=st.tuples(NO_SURROGATES),
        notices=st.tuples(NO_SURROGATES),
        failing=st.tuples(st.tuples(NO_SURROGATES, st.datetimes(timezones=st.just(UTC)))),
    )
)
def test_a_round_survives_its_record(record: RoundRecord) -> None:
    kept = orjson.loads(orjson.dumps(round_to_json(record)))

    assert round_from_json(kept) == record


def test_a_call_survives_its_record_without_the_raw_value() -> None:
    at = datetime(2026, 4, 7, 14, 35, 0, 123456, tzinfo=UTC)
    record = ToolInvocationRecord(
        "c1", "core__get_logs", {"product": "checkout"}, True, None, "", at,
        at + timedelta(milliseconds=7), 2, truncated=True, raw={"secret": "x"},
    )  # fmt: skip
    outcome = ToolOutcome(record, '{"lines":[]}', "no lines", "p_1")

    kept = orjson.dumps(outcome_to_json(outcome))
    restored = outcome_from_json(orjson.loads(kept))

    assert restored == outcome
    assert (restored.record.raw, restored.record.latency_ms) == (None, 7)
    assert b"secret" not in kept


JSON = st.recursive(
    st.none()
    | st.booleans()
    | COUNTS
    | st.floats(allow_nan=False, allow_infinity=False)
    | NO_SURROGATES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NO_SURROGATES, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.builds(
        ToolOutcome,
        record=st.builds(
            ToolInvocationRecord,
            arguments=st.dictionaries(NO_SURROGATES, JSON, max_size=4),
            error_code=st.none() | st.sampled_from(ToolErrorCode),
            started_at=st.datetimes(timezones=st.just(UTC)),
            ended_at=st.datetimes(timezones=st.just(UTC)),
            raw=st.just({"secret": "x"}),
        ),
    )
)
def test_a_running_call_equals_its_record(outcome: ToolOutcome) -> None:
    """A turn goes on with the one where it made the call, and with the other after a crash."""
    in_hand = without_raw(outcome)

    # As a turn's journal writes it, which takes whole numbers of any size.
    assert in_hand == outcome_from_json(json.loads(json.dumps(outcome_to_json(outcome))))
    assert in_hand.record.raw is None
