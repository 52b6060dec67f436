"""The requests to a control plane, and the meaning of its answers or its silence."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.port import (
    AnswerKind,
    BadTemplate,
    ControlOrder,
    Endpoint,
    check_template,
    fill,
)
from adapters.http.client import http_client
from tests.fakes.control_plane_server import (
    Answer,
    ControlPlaneServer,
    control_plane_server,
    hangs_up,
    says,
    silence,
)

TOKEN = "tok-canary-1234567890"


@pytest.fixture
async def server() -> AsyncIterator[ControlPlaneServer]:
    async with control_plane_server() as running:
        yield running


@pytest.fixture
async def plane() -> AsyncIterator[HttpControlPlane]:
    async with http_client() as client:
        yield HttpControlPlane(client, {"cp": TOKEN}.__getitem__)


def order(base: str, **changes: object) -> ControlOrder:
    endpoint = Endpoint(
        url=base + "/products/{product}/rollback",
        credential_id="cp",
        status_url=base + "/operations?of={product}",
        timeout_s=5.0,
    )
    made = ControlOrder(
        endpoint=endpoint,
        idempotency_key="p_1",
        action="rollback-deploy",
        product="checkout",
        params={"version": "v41"},
        confirmed_by="U1",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_the_request_carries_key_actor_token_and_body(
    server: ControlPlaneServer, plane: HttpControlPlane
) -> None:
    answer = await plane.send(order(server.url))

    (got,) = server.received
    assert answer.kind is AnswerKind.SUCCEEDED
    assert answer.body == {"ok": True}
    assert (got.method, got.raw_path) == ("POST", "/products/checkout/rollback")
    assert got.headers["Idempotency-Key"] == "p_1"
    assert got.headers["X-Kortex-Actor"] == "U1"
    assert got.headers["Authorization"] == f"Bearer {TOKEN}"
    assert json.loads(got.body) == {
        "proposal_id": "p_1",
        "action": "rollback-deploy",
        "product": "checkout",
        "params": {"version": "v41"},
        "confirmed_by": "U1",
        "dry_run": False,
    }


@pytest.mark.parametrize(
    ("post", "kind"),
    [
        (says(200, {"ok": True}), AnswerKind.SUCCEEDED),
        (says(202, {}), AnswerKind.SUCCEEDED),
        (says(200, text="<html>"), AnswerKind.SUCCEEDED),
        (says(409, {"error": "busy"}), AnswerKind.FAILED),
        (says(401, text="no"), AnswerKind.FAILED),
        (says(302, {}, Location="/elsewhere"), AnswerKind.LOST),
        (says(500, {}), AnswerKind.LOST),
        (says(503, text="down"), AnswerKind.LOST),
        (hangs_up, AnswerKind.LOST),
    ],
)
async def test_an_answer_is_read_by_its_status_and_never_repeated(
    server: ControlPlaneServer, plane: HttpControlPlane, post: Answer, kind: AnswerKind
) -> None:
    server.post = post

    answer = await plane.send(order(server.url))

    assert answer.kind is kind
    assert len(server.received) == 1


async def test_silence_is_lost_after_the_endpoints_timeout(
    server: ControlPlaneServer, plane: HttpControlPlane
) -> None:
    server.post = silence
    slow = order(server.url)

    answer = await plane.send(replace(slow, endpoint=replace(slow.endpoint, timeout_s=0.05)))

    assert answer.kind is AnswerKind.LOST


async def test_a_failed_connection_sent_nothing(plane: HttpControlPlane) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        answer = await plane.send(order(f"http://127.0.0.1:{port}"))

    assert answer.kind is AnswerKind.NOT_SENT


async def test_an_oversized_answer_is_still_a_success(
    server: ControlPlaneServer, plane: HttpControlPlane
) -> None:
    server.post = says(200, {"x": "y" * 200_000})

    answer = await plane.send(order(server.url))

    assert (answer.kind, answer.body) == (AnswerKind.SUCCEEDED, None)


async def test_cancellation_propagates(server: ControlPlaneServer, plane: HttpControlPlane) -> None:
    server.post = silence
    task = asyncio.create_task(plane.send(order(server.url)))
    await server.arrived.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_missing_credential_sends_nothing(server: ControlPlaneServer) -> None:
    secrets: dict[str, str] = {}
    async with http_client() as client:
        answer = await HttpControlPlane(client, secrets.__getitem__).send(order(server.url))

    assert answer.kind is AnswerKind.NOT_SENT
    assert server.received == []


async def test_the_token_is_resolved_at_each_call(server: ControlPlaneServer) -> None:
    tokens = {"cp": "first"}
    async with http_client() as client:
        plane = HttpControlPlane(client, tokens.__getitem__)
        await plane.send(order(server.url))
        tokens["cp"] = "second"
        await plane.send(order(server.url))

    sent = [r.headers["Authorization"] for r in server.received]
    assert sent == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("get", "kind"),
    [
        (says(200, {"state": "succeeded", "result": {"to": "v41"}}), AnswerKind.SUCCEEDED),
        (says(200, {"status": "rolled back", "to": "v41"}), AnswerKind.SUCCEEDED),
        (says(200, {"state": "failed"}), AnswerKind.FAILED),
        (says(200, {"status": "Running"}), AnswerKind.RUNNING),
        (says(200, {"state": "not_received"}), AnswerKind.LOST),
        (says(200, text="<html>welcome</html>"), AnswerKind.LOST),
        (says(404, {"error": "no such key"}), AnswerKind.LOST),
        (says(401, {}), AnswerKind.LOST),
        (says(500, {}), AnswerKind.LOST),
        (hangs_up, AnswerKind.LOST),
    ],
)
async def test_a_status_request_settles_only_clear_answers(
    server: ControlPlaneServer, plane: HttpControlPlane, get: Answer, kind: AnswerKind
) -> None:
    server.get = get

    answer = await plane.ask(order(server.url))

    (asked,) = {(r.method, r.raw_path) for r in server.received}
    assert answer.kind is kind
    assert asked == ("GET", "/operations?of=checkout&idempotency_key=p_1")


async def test_without_a_status_url_nothing_is_requested(
    server: ControlPlaneServer, plane: HttpControlPlane
) -> None:
    without = order(server.url)

    answer = await plane.ask(replace(without, endpoint=replace(without.endpoint, status_url="")))

    assert answer.kind is AnswerKind.LOST
    assert server.received == []


@pytest.mark.parametrize(
    "product", ["../../admin", "a/b", "a?x=1", "a#b", "%2e%2e", "é\n", "@evil"]
)
async def test_a_hostile_product_stays_one_path_segment(
    server: ControlPlaneServer, plane: HttpControlPlane, product: str
) -> None:
    await plane.send(order(server.url, product=product))

    (got,) = server.received
    assert got.raw_path.count("/") == 3
    assert got.raw_path.startswith("/products/")
    assert got.raw_path.endswith("/rollback")


@given(
    product=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda p: p not in (".", "..")
    )
)
def test_no_product_escapes_the_host_or_the_path(product: str) -> None:
    template = "https://control.example/v1/products/{product}/rollback?of={product}"

    url = httpx.URL(fill(template, product))

    assert url.host == "control.example"
    assert url.raw_path.startswith(b"/v1/products/")
    assert url.raw_path.split(b"?")[0].count(b"/") == 4
    assert url.raw_path.split(b"?")[0].endswith(b"/rollback")


@pytest.mark.parametrize("product", ["", ".", "..", "\ud800"])
def test_a_relative_path_is_not_a_product(product: str) -> None:
    with pytest.raises(BadTemplate):
        fill("https://control.example/{product}", product)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "ftp://control.example/",
        "//control.example/",
        "https://{product}.example/",
        "https://control.example:{product}/",
        "https://user:secret@control.example/",
        "https://control.example/{version}",
        "https://control.example/{product",
        "https://control.example/#{product}",
    ],
)
def test_a_template_that_could_redirect_elsewhere_is_refused(template: str) -> None:
    with pytest.raises(BadTemplate):
        check_template(template)


@pytest.mark.parametrize("product", ["x" * 70_000, "ü" * 30_000])
async def test_a_product_that_makes_the_url_too_long_is_not_sent(
    plane: HttpControlPlane, product: str
) -> None:
    answer = await plane.send(order("http://127.0.0.1:9", product=product))
    assert answer.kind is AnswerKind.NOT_SENT
    assert "too long" in answer.words
