"""The promises of every sender's wire: authentication, the meaning of its bodies, and robustness."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.alerts.wire import Unreadable
from bot.domain.alerts import AlertState
from tests.fakes.alert_senders import SECRET, STRUCTURED, Sender, senders, signature
from tests.odd_json import LABEL_TEXTS, NO_INSTANTS

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SINCE = datetime(2026, 11, 22, 11, 55, tzinfo=UTC)
NAMES = ["alertmanager", "grafana", "pagerduty", "cloudevents"]
FIRING, RESOLVED = AlertState.FIRING, AlertState.RESOLVED

FIELDS = [
    "alerts", "annotations", "data", "endsAt", "event", "event_type", "fingerprint", "groupKey", "id",
    "labels", "occurred_at", "priority", "service", "severity", "source", "specversion", "startsAt",
    "status", "subject", "summary", "time", "title", "type", "urgency",
]  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@pytest.fixture(params=NAMES)
def sender(request: pytest.FixtureRequest) -> Sender:
    return senders()[request.param]


def test_a_genuine_request_is_accepted_with_its_start_time(sender: Sender) -> None:
    headers = sender.headers_of(sender.body)

    assert sender.wire.admits(headers, sender.body)
    first = sender.wire.read(headers, sender.body, NOW)[0]

    assert (first.source, first.state) == (sender.wire.source, FIRING)
    assert first.group
    assert first.id
    assert "checkout" in first.title
    assert first.labels["service"] == "checkout"
    assert timedelta(0) <= first.changed_at - SINCE < timedelta(seconds=5)


def test_a_repeated_request_means_the_same_alerts(sender: Sender) -> None:
    headers = sender.headers_of(sender.body)
    once = sender.wire.read(headers, sender.body, NOW)
    assert sender.wire.read(headers, sender.body, NOW + timedelta(hours=4)) == once


@pytest.mark.parametrize("given_secret", ["another secret", SECRET + "x", SECRET[:-1]])
def test_a_wrong_secret_is_refused(sender: Sender, given_secret: str) -> None:
    assert not sender.wire.admits(sender.headers_of(sender.body, given_secret), sender.body)


def test_missing_and_odd_headers_are_refused(sender: Sender) -> None:
    assert not sender.wire.admits({}, sender.body)
    odd = {"authorization": "Bearer \udcff", "x-pagerduty-signature": "v1=\udcff,,v0=,"}
    assert not sender.wire.admits(odd, sender.body)


def test_an_empty_secret_admits_no_one() -> None:
    admitted = [
        name
        for name, each in senders(secret="").items()
        if each.wire.admits(each.headers_of(each.body, ""), each.body)
    ]
    assert admitted == []


def test_a_clock_ahead_of_ours_does_not_matter(sender: Sender) -> None:
    early = SINCE - timedelta(days=1)
    found = sender.wire.read(sender.headers_of(sender.body), sender.body, early)
    assert {each.changed_at <= early for each in found} == {True}


HOSTILE = {
    "nothing": b"",
    "no JSON": b"\xff\xfe{",
    "1,500 brackets": b"[" * 1_500,
    "1,500 objects": b'{"event":' * 1_500,
    "a lone surrogate": b'{"groupKey": "\\ud800", "alerts": ["\\ud800"], "event": "\\udfff"}',
    "a number of 128 bits": b'{"alerts": 340282366920938463463374607431768211456}',
    "a number of 5,000 digits": b'{"alerts": ' + b"9" * 5_000 + b"}",
    "a list": b"[]",
    "null": b"null",
    "an alert that is null": b'{"alerts": [null], "event": null}',
    "a date that is none": b'{"alerts": [{"status": "firing", "startsAt": "9999999", "fingerprint": 1}]}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_body_is_unreadable_and_never_echoed(sender: Sender, body: bytes) -> None:
    with pytest.raises(Unreadable) as told:
        sender.wire.read(sender.headers_of(body), body, NOW)
    assert "9999999" not in str(told.value)


@given(odd=json_values, field=st.sampled_from(FIELDS), name=st.sampled_from(NAMES))
def test_any_value_in_any_field_is_read_or_unreadable(odd: object, field: str, name: str) -> None:
    sender = senders()[name]
    body = json.dumps(_with(json.loads(sender.body), field, odd)).encode()
    with suppress(Unreadable):
        sender.wire.read(sender.headers_of(body), body, NOW)


def _with(value: object, field: str, odd: object) -> object:
    """The same with `odd` under every such name, however deep."""
    match value:
        case dict():
            return {k: odd if k == field else _with(v, field, odd) for k, v in value.items()}
        case list():
            return [_with(each, field, odd) for each in value]
        case _:
            return value


def test_an_alertmanager_group_is_one_incident_of_several_alerts() -> None:
    sender = senders()["alertmanager"]
    firing, resolved = sender.wire.read({}, sender.body, NOW)
    assert firing.group == resolved.group == '{}:{alertname="HighLatency"}'
    assert firing.id != resolved.id
    assert resolved.state is RESOLVED
    assert resolved.changed_at == datetime(2026, 11, 22, 11, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "states"),
    [
        ("incident.triggered", [FIRING]),
        ("incident.reopened", [FIRING]),
        ("incident.resolved", [RESOLVED]),
        ("incident.acknowledged", []),
        ("incident.annotated", []),
        ("pagey.ping", []),
    ],
)
def test_only_pagerduty_events_that_change_the_state_count(
    event: str, states: list[AlertState]
) -> None:
    sender = senders()["pagerduty"]
    body = sender.body.replace(b"incident.triggered", event.encode())
    assert [each.state for each in sender.wire.read({}, body, NOW)] == states


def test_a_pagerduty_signature_is_found_among_several_and_covers_every_byte() -> None:
    sender = senders()["pagerduty"]
    two = {"x-pagerduty-signature": f"v1={'0' * 64}, {signature(sender.body)}"}
    assert sender.wire.admits(two, sender.body)
    assert not sender.wire.admits(two, sender.body + b" ")
    assert not sender.wire.admits(
        {"x-pagerduty-signature": signature(sender.body).replace("v1", "v0")}, sender.body
    )


@pytest.mark.parametrize(
    ("kind", "data", "state"),
    [
        ("com.example.alert.resolved", {}, RESOLVED),
        ("com.example.alert", {"status": "OK"}, RESOLVED),
        ("com.example.alert.resolved", {"status": "firing"}, FIRING),
        ("com.example.alert", {"state": ["odd"]}, FIRING),
    ],
)
def test_a_cloud_event_is_resolved_by_its_data_or_its_type(
    kind: str, data: dict[str, object], state: AlertState
) -> None:
    sender = senders()["cloudevents"]
    body = orjson.dumps({**orjson.loads(sender.body), "type": kind, "data": data})
    (alert,) = sender.wire.read(STRUCTURED, body, NOW)
    assert alert.state is state


def test_a_cloud_event_is_equal_in_structured_binary_and_batch_form() -> None:
    sender = senders()["cloudevents"]
    event = orjson.loads(sender.body)
    (structured,) = sender.wire.read(STRUCTURED, sender.body, NOW)
    batch = {"content-type": "application/cloudevents-batch+json; charset=utf-8"}
    (batched,) = sender.wire.read(batch, orjson.dumps([event]), NOW)
    named = {f"ce-{name}": value for name, value in event.items() if name != "data"}
    binary = {"content-type": "application/json", **named, "ce-subject": "checkout%2Flatency"}
    (alone,) = sender.wire.read(binary, orjson.dumps(event["data"]), NOW)

    assert structured == batched
    assert replace(alone, labels={}) == replace(structured, labels={})
    assert alone.labels["replicas"] == structured.labels["replicas"] == "3"


def test_plain_json_is_not_a_cloud_event() -> None:
    sender = senders()["cloudevents"]
    with pytest.raises(Unreadable, match="ce- headers"):
        sender.wire.read({"content-type": "application/json"}, sender.body, NOW)


GROUPS = ["alertmanager", "grafana"]
ODD_ALERTS = [None, 7, "x", {}, {"status": "firing"}, {"status": "odd", "fingerprint": "f"}]


def _group(name: str, *more: object, **fields: object) -> tuple[Sender, bytes]:
    sender = senders()[name]
    body = orjson.loads(sender.body)
    first = body["alerts"][0] | fields
    return sender, json.dumps({**body, "alerts": [first, *more]}).encode()


@pytest.mark.parametrize("odd", ODD_ALERTS, ids=str)
@pytest.mark.parametrize("name", GROUPS)
def test_an_odd_alert_does_not_lose_its_group(name: str, odd: object) -> None:
    sender, body = _group(name, odd)
    assert len(sender.wire.read(sender.headers_of(body), body, NOW)) == 1


@pytest.mark.parametrize("field", ["annotations", "labels", "generatorURL", "fingerprint"])
@pytest.mark.parametrize("odd", [None, 7, "x", [], {"a": {"b": None}}, 1 << 64], ids=str)
@pytest.mark.parametrize("name", GROUPS)
def test_a_single_alert_with_an_odd_field_is_accepted(name: str, field: str, odd: object) -> None:
    sender, body = _group(name, **{field: odd})
    (found,) = sender.wire.read(sender.headers_of(body), body, NOW)
    assert found.id


# Where each sender writes when something changed.
WHEN = {
    "alertmanager": ("startsAt", "endsAt"), "grafana": ("startsAt", "endsAt"),
    "cloudevents": ("time",), "pagerduty": ("occurred_at",),
}  # fmt: skip


def _alone(sender: Sender) -> object:
    """The sender's request with its first alert only."""
    body = json.loads(sender.body)
    return body | {"alerts": body["alerts"][:1]} if "alerts" in body else body


@pytest.mark.parametrize("odd", NO_INSTANTS, ids=repr)
@pytest.mark.parametrize("status", ["firing", "resolved"])
def test_a_single_alert_without_a_time_uses_the_time_of_receipt(
    sender: Sender, status: str, odd: object
) -> None:
    body = _with(_alone(sender), "status", status)
    for field in WHEN[sender.wire.source]:
        body = _with(body, field, odd)
    sent = json.dumps(body).encode()
    (found,) = sender.wire.read(sender.headers_of(sent), sent, NOW)
    assert found.changed_at == NOW


@pytest.mark.parametrize(("odd", "text"), LABEL_TEXTS, ids=repr)
@pytest.mark.parametrize("name", ["alertmanager", "grafana", "cloudevents"])
def test_a_label_of_a_single_alert_is_text(name: str, odd: object, text: str | None) -> None:
    sender = senders()[name]
    labels = {"service": "checkout", "k8s.pod.name": odd}
    sent = json.dumps(_with(_alone(sender), "labels", labels)).encode()
    (found,) = sender.wire.read(sender.headers_of(sent), sent, NOW)
    assert (found.labels["service"], found.labels.get("k8s.pod.name")) == ("checkout", text)


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"summary": {}}, 1 << 64], ids=str)
@pytest.mark.parametrize("field", ["service", "priority", "urgency", "title"])
def test_a_pagerduty_incident_with_an_odd_field_is_accepted(field: str, odd: object) -> None:
    sender = senders()["pagerduty"]
    sent = json.dumps(_with(json.loads(sender.body), field, odd)).encode()
    (found,) = sender.wire.read(sender.headers_of(sent), sent, NOW)
    assert found.id == "PGR0VU2"


def test_the_log_names_the_odd_fields_of_an_alert_without_values() -> None:
    sender, body = _group("alertmanager", startsAt="9999999x", annotations=[])
    with capture_logs() as logged:
        sender.wire.read(sender.headers_of(body), body, NOW)
    fields = [one["fields"] for one in logged if one["event"] == "answer.unreadable_fields"]
    assert fields == [["annotations", "starts_at"]]
    assert "9999999x" not in repr(logged)


def test_an_alert_without_a_fingerprint_is_identified_by_its_labels() -> None:
    def read(**labels: str) -> str:
        sender, body = _group("alertmanager", fingerprint=None, labels=labels)
        return sender.wire.read(sender.headers_of(body), body, NOW)[0].id

    assert read(a="1", b="2") == read(b="2", a="1") != read(a="1", b="3")


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_without_a_readable_alert_is_refused(name: str) -> None:
    sender = senders()[name]
    body = orjson.dumps({**orjson.loads(sender.body), "alerts": [None, 7]})
    with pytest.raises(Unreadable, match="none of the 2 alerts can be read"):
        sender.wire.read(sender.headers_of(body), body, NOW)


def test_a_null_subject_of_an_event_counts_as_absent() -> None:
    sender = senders()["cloudevents"]
    event = {
        "specversion": "1.0",
        "id": "2",
        "source": "/mon",
        "type": "x.alert",
        "subject": None,
        "data": {"status": "firing"},
    }
    body = orjson.dumps(event)
    headers = {**sender.headers_of(body), "content-type": "application/cloudevents+json"}
    (alert,) = sender.wire.read(headers, body, NOW)
    assert alert.state is FIRING


@pytest.mark.parametrize("odd", [None, 7, {}, {"specversion": "0.3"}], ids=str)
def test_one_odd_event_does_not_lose_its_batch(odd: object) -> None:
    sender = senders()["cloudevents"]
    body = orjson.dumps([odd, orjson.loads(sender.body)])
    headers = {**sender.headers_of(body), "content-type": "application/cloudevents-batch+json"}
    assert len(sender.wire.read(headers, body, NOW)) == 1
