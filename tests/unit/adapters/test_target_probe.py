"""What a target's answers count as, and with which credential and key it is asked."""

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.control_plane.port import ControlOrder, Endpoint, Objects, ProbeFailed, Reads
from adapters.control_plane.probe import HttpProbe, facts_in, objects_in
from adapters.http.client import http_client
from tests.fakes.control_plane_server import (
    Answer,
    ControlPlaneServer,
    control_plane_server,
    hangs_up,
    says,
    silence,
)

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "web", "generation": 7, "resourceVersion": "991"},
    "spec": {
        "replicas": 3,
        "template": {"spec": {"containers": [{"image": "web:1"}, {"image": "proxy:2"}]}},
    },
}


@pytest.fixture
async def server() -> AsyncIterator[ControlPlaneServer]:
    async with control_plane_server() as running:
        yield running


@pytest.fixture
async def probe() -> AsyncIterator[HttpProbe]:
    async with http_client() as client:
        yield HttpProbe(client, {"reader": "read-token"}.__getitem__)


def order(base: str, **reads: object) -> ControlOrder:
    made = Reads(
        **{  # type: ignore[arg-type]
            "credential_id": "reader",
            "count_url": base + "/count/{product}",
            "fingerprint_url": base + "/state/{params.version}",
            "timeout_s": 0.5,
            **reads,
        }
    )
    endpoint = Endpoint(base + "/products/{product}/rollback", credential_id="cp", reads=made)
    return ControlOrder(endpoint, "p_1", "rollback", "checkout", {"version": "v/41"}, "U1")


async def test_a_dry_run_is_marked_with_its_own_key_and_the_reading_token(
    server: ControlPlaneServer, probe: HttpProbe
) -> None:
    server.post = says(200, {"preview": {"from": "v42"}, "request": 17})

    first, again = await probe.dry_run(order(server.url)), await probe.dry_run(order(server.url))

    keys = [r.headers["Idempotency-Key"] for r in server.received]
    assert first == again == {"from": "v42"}
    assert [json.loads(r.body)["dry_run"] for r in server.received] == [True, True]
    assert len({"p_1", *keys}) == 3
    assert {r.headers["Authorization"] for r in server.received} == {"Bearer read-token"}


async def test_count_and_fingerprint_are_requested_for_this_target(
    server: ControlPlaneServer, probe: HttpProbe
) -> None:
    server.get = says(200, DEPLOYMENT | {"count": 4})

    assert await probe.count(order(server.url)) == Objects(4)
    facts = await probe.fingerprint(order(server.url))

    assert facts == {
        "metadata.generation": "7",
        "spec.replicas": "3",
        "spec.template.spec.containers.image": "web:1, proxy:2",
    }
    counted, read = server.received
    assert counted.raw_path.startswith("/count/checkout?action=rollback&product=checkout&params=")
    assert read.raw_path == "/state/v%2F41"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (says(422, {"why": "no such version"}), True),
        (says(401, text="who are you"), False),
        (says(503, {}), False),
        (says(302, text="", Location="/elsewhere"), False),
        (silence, False),
        (hangs_up, False),
    ],
    ids=["422", "401", "503", "302", "silence", "hangs up"],
)
async def test_an_unclear_answer_is_not_a_reading(
    server: ControlPlaneServer, probe: HttpProbe, answer: Answer, refused: bool
) -> None:
    server.post = answer

    with pytest.raises(ProbeFailed) as caught:
        await probe.dry_run(order(server.url))

    assert caught.value.refused is refused
    assert "read-token" not in str(caught.value)


async def test_a_missing_credential_requests_nothing(
    server: ControlPlaneServer, probe: HttpProbe
) -> None:
    with pytest.raises(ProbeFailed, match="reading credential is not configured"):
        await probe.count(order(server.url, credential_id="nobody"))

    assert server.received == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (3, Objects(3)),
        (["a", "b"], Objects(2, ("a", "b"))),
        ({"count": 5}, Objects(5)),
        ({"count": 1, "objects": ["a", "b"]}, Objects(2, ("a", "b"))),
        ({"items": [{"metadata": {"name": "web-1"}}]}, Objects(1, ("web-1",))),
        (
            {"items": [{}], "metadata": {"continue": "x", "remainingItemCount": 9}},
            Objects(10),
        ),
    ],
)
def test_a_count_is_a_number_or_a_list_plus_the_remaining_pages(
    answer: JsonValue, found: Objects
) -> None:
    assert objects_in(answer) == found


@pytest.mark.parametrize(
    "answer",
    [None, True, -1, "3", 2.5, {}, {"count": "3"}, {"count": True}, {"items": {}},
     {"items": [], "metadata": {"continue": "x"}}],
)  # fmt: skip
def test_an_answer_without_a_number_is_not_a_count(answer: JsonValue) -> None:
    with pytest.raises(ProbeFailed):
        objects_in(answer)


def test_facts_are_the_named_fields_or_the_default_ones() -> None:
    info: JsonValue = {"config_hash": "a1", "version": "v41", "uptime_s": 17}

    assert facts_in(info) == {"config_hash": "a1", "version": "v41"}
    assert facts_in(info, ("uptime_s",)) == {"uptime_s": "17"}


@pytest.mark.parametrize(
    ("answer", "fields"),
    [([], ()), ({"uptime_s": 17}, ()), ({"config_hash": "a1"}, ("config_hash", "build.commit"))],
)
def test_a_state_without_its_facts_has_no_fingerprint(
    answer: JsonValue, fields: tuple[str, ...]
) -> None:
    with pytest.raises(ProbeFailed):
        facts_in(answer, fields)


@given(st.text(min_size=1), st.text(min_size=1))
def test_facts_differ_when_their_text_does(one: str, other: str) -> None:
    long = "x" * 400
    same = facts_in({"version": long + one}) == facts_in({"version": long + other})

    assert same == (one == other)
