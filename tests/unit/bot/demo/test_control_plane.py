"""The demo's control plane keeps the contract that the bot's client relies on."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestServer

from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.port import (
    AnswerKind,
    ControlOrder,
    Endpoint,
    Objects,
    ProbeFailed,
    Reads,
)
from adapters.control_plane.probe import HttpProbe
from adapters.http.client import http_client
from bot.demo.control_plane import INFO_PATH, OPERATIONS_PATH, TARGETS_PATH, create_control_plane

TOKEN, READ_TOKEN = "demo-token", "demo-read-token"


@pytest.fixture
async def base() -> AsyncIterator[str]:
    app = create_control_plane(
        TOKEN,
        {"checkout": ("v42", "v41")},
        read_token=READ_TOKEN,
        hosts={"checkout": ["checkout-1", "checkout-2"]},
    )
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
async def plane() -> AsyncIterator[HttpControlPlane]:
    async with http_client() as client:
        tokens = {"cp": TOKEN, "wrong": "guess", "read": READ_TOKEN}
        yield HttpControlPlane(client, tokens.__getitem__)


@pytest.fixture
async def probe() -> AsyncIterator[HttpProbe]:
    async with http_client() as client:
        yield HttpProbe(client, {"read": READ_TOKEN}.__getitem__)


def order(base: str, key: str = "p_1") -> ControlOrder:
    endpoint = Endpoint(
        base + "/products/{product}/rollback",
        credential_id="cp",
        status_url=base + OPERATIONS_PATH,
        reads=Reads("read", base + TARGETS_PATH, base + INFO_PATH),
    )
    return ControlOrder(endpoint, key, "rollback-deploy", "checkout", {}, "U1")


async def test_a_repeated_key_takes_effect_once(base: str, plane: HttpControlPlane) -> None:
    first, again = await plane.send(order(base)), await plane.send(order(base))

    assert first == again
    assert first.body == {
        "status": "rolled back",
        "product": "checkout",
        "from": "v42",
        "to": "v41",
    }


async def test_another_key_is_another_rollback(base: str, plane: HttpControlPlane) -> None:
    await plane.send(order(base))

    answer = await plane.send(replace(order(base, "p_2"), params={"version": "v40"}))

    assert isinstance(answer.body, dict)
    assert (answer.body["from"], answer.body["to"]) == ("v41", "v40")


async def test_it_reports_the_result_of_a_key(base: str, plane: HttpControlPlane) -> None:
    before = await plane.ask(order(base))
    await plane.send(order(base))
    after = await plane.ask(order(base))

    assert (before.kind, after.kind) == (AnswerKind.LOST, AnswerKind.SUCCEEDED)


async def test_a_wrong_token_changes_nothing(base: str, plane: HttpControlPlane) -> None:
    stranger = order(base)

    answer = await plane.send(
        replace(stranger, endpoint=replace(stranger.endpoint, credential_id="wrong"))
    )

    assert (answer.kind, answer.status) == (AnswerKind.FAILED, 401)
    assert (await plane.ask(order(base))).kind is AnswerKind.LOST


async def test_its_targets_are_readable_and_a_dry_run_changes_nothing(
    base: str, plane: HttpControlPlane, probe: HttpProbe
) -> None:
    before = await probe.fingerprint(order(base))

    assert await probe.dry_run(order(base)) == {
        "product": "checkout",
        "hosts": ["checkout-1", "checkout-2"],
        "from": "v42",
        "to": "v41",
    }
    assert await probe.count(order(base)) == Objects(2, ("checkout-1", "checkout-2"))
    assert await probe.fingerprint(order(base)) == before

    await plane.send(order(base))
    assert await probe.fingerprint(order(base)) != before


async def test_the_reading_token_cannot_run_actions(base: str, plane: HttpControlPlane) -> None:
    wanted = order(base)

    answer = await plane.send(
        replace(wanted, endpoint=replace(wanted.endpoint, credential_id="read"))
    )

    assert (answer.kind, answer.status) == (AnswerKind.FAILED, 401)


async def test_nothing_is_read_without_the_reading_token(base: str) -> None:
    async with http_client() as client:
        stranger = HttpProbe(client, {"read": "guess"}.__getitem__)
        for read in (stranger.dry_run, stranger.count, stranger.fingerprint):
            with pytest.raises(ProbeFailed, match="401"):
                await read(order(base))
