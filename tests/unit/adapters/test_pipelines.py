"""Actions as runs of GitHub and GitLab: started once, found again by the proposal's id."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from pydantic import JsonValue

from adapters.control_plane.orders import Executors, Rehearsal
from adapters.control_plane.pipelines import GitHub, GitLab, Pipelines, Service
from adapters.control_plane.port import (
    AnswerKind,
    ControlOrder,
    Endpoint,
    ExecutorKind,
    where_to_look,
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
from tests.odd_json import ODD

K = AnswerKind


@pytest.fixture
async def server() -> AsyncIterator[ControlPlaneServer]:
    async with control_plane_server() as running:
        yield running


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with http_client() as made:
        yield made


def pipelines(service: Service, client: httpx.AsyncClient) -> Pipelines:
    return Pipelines(service, client, {"ci": "ci-token"}.__getitem__)


def order(
    base: str, kind: ExecutorKind = ExecutorKind.GITHUB, timeout_s: float = 10.0
) -> ControlOrder:
    endpoint = Endpoint(
        base + "/it", credential_id="ci", timeout_s=timeout_s, kind=kind, ref="main"
    )
    params: dict[str, JsonValue] = {"version": "v41", "hosts": ["a"], "kortex_proposal": "forged"}
    return ControlOrder(endpoint, "p_1", "rollback", "checkout", params, "U1")


async def test_github_gets_text_inputs_and_an_id_no_parameter_can_replace(
    server: ControlPlaneServer, client: httpx.AsyncClient
) -> None:
    server.post = says(204, text="")

    answer = await pipelines(GitHub(), client).send(order(server.url))

    (post,) = server.received
    assert answer.kind is K.RUNNING
    assert post.raw_path == "/it/dispatches"
    assert post.headers["Authorization"] == "Bearer ci-token"
    assert json.loads(post.body) == {
        "ref": "main",
        "inputs": {
            "version": "v41",
            "hosts": '["a"]',
            "product": "checkout",
            "kortex_proposal": "p_1",
        },
    }


async def test_gitlab_gets_variables_with_their_own_prefix(
    server: ControlPlaneServer, client: httpx.AsyncClient
) -> None:
    server.post = says(201, {"id": 7, "status": "created", "web_url": "https://g.example/7"})

    answer = await pipelines(GitLab(), client).send(order(server.url, ExecutorKind.GITLAB))

    (post,) = server.received
    assert (answer.kind, answer.body) == (
        K.RUNNING,
        {"run": 7, "status": "created", "url": "https://g.example/7"},
    )
    assert post.raw_path == "/it/pipeline"
    assert post.headers["PRIVATE-TOKEN"] == "ci-token"
    variables = {v["key"]: v["value"] for v in json.loads(post.body)["variables"]}
    assert variables == {
        "KORTEX_PROPOSAL": "p_1",
        "KORTEX_ACTION": "rollback",
        "KORTEX_PRODUCT": "checkout",
        "KORTEX_PARAM_VERSION": "v41",
        "KORTEX_PARAM_HOSTS": '["a"]',
        "KORTEX_PARAM_KORTEX_PROPOSAL": "forged",
    }


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (says(422, {"message": "Unexpected inputs"}), K.FAILED),
        (says(401, {}), K.FAILED),
        (says(500, {}), K.LOST),
        (says(302, text="", Location="/x"), K.LOST),
        (hangs_up, K.LOST),
    ],
    ids=["422", "401", "500", "302", "hangs up"],
)
async def test_a_refused_start_is_reported_exactly(
    server: ControlPlaneServer, client: httpx.AsyncClient, answer: Answer, kind: AnswerKind
) -> None:
    server.post = answer

    assert (await pipelines(GitHub(), client).send(order(server.url))).kind is kind
    assert len(server.received) == 1


async def test_an_unanswered_start_is_lost(
    server: ControlPlaneServer, client: httpx.AsyncClient
) -> None:
    server.post = silence

    answer = await pipelines(GitHub(), client).send(order(server.url, timeout_s=0.1))

    assert answer.kind is K.LOST


async def test_a_failed_connection_sent_nothing(client: httpx.AsyncClient) -> None:
    async with control_plane_server() as gone:
        url = gone.url

    assert (await pipelines(GitLab(), client).send(order(url))).kind is K.NOT_SENT


def run(title: str, status: str, conclusion: str | None = None) -> dict[str, JsonValue]:
    url = "https://github.example/run/9"
    return {
        "id": 9,
        "display_title": title,
        "status": status,
        "conclusion": conclusion,
        "html_url": url,
    }


@pytest.mark.parametrize(
    ("runs", "kind"),
    [
        ([run("p_1", "queued")], K.RUNNING),
        ([run("rollback p_1", "in_progress")], K.RUNNING),
        ([run("p_1", "completed", "success")], K.SUCCEEDED),
        ([run("p_1", "completed", "failure")], K.FAILED),
        ([run("p_1", "completed", "cancelled")], K.FAILED),
        ([run("p_10", "completed", "success")], K.LOST),
        ([run("p_10", "completed", "success"), run("p_1", "waiting")], K.RUNNING),
        ([], K.LOST),
    ],
)
async def test_a_github_run_is_found_by_its_title(
    server: ControlPlaneServer,
    client: httpx.AsyncClient,
    runs: list[JsonValue],
    kind: AnswerKind,
) -> None:
    server.get = says(200, {"workflow_runs": runs})

    assert (await pipelines(GitHub(), client).ask(order(server.url))).kind is kind
    assert server.received[0].raw_path == "/it/runs?event=workflow_dispatch&per_page=50"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (says(200, [{"name": "p_1", "status": "success", "id": 7}]), K.SUCCEEDED),
        (says(200, [{"name": "p_1", "status": "canceled"}]), K.FAILED),
        (says(200, [{"name": "p_1", "status": "manual"}]), K.RUNNING),
        (says(200, []), K.LOST),
        (says(200, {"message": "?"}), K.LOST),
        (says(503, {}), K.LOST),
    ],
    ids=["success", "canceled", "manual", "none", "no list", "503"],
)
async def test_a_gitlab_pipeline_is_found_by_its_name(
    server: ControlPlaneServer, client: httpx.AsyncClient, answer: Answer, kind: AnswerKind
) -> None:
    server.get = answer

    said = await pipelines(GitLab(), client).ask(order(server.url, ExecutorKind.GITLAB))

    assert said.kind is kind
    assert server.received[0].raw_path == "/it/pipelines?name=p_1"


async def test_an_unreported_pipeline_is_lost(
    server: ControlPlaneServer, client: httpx.AsyncClient
) -> None:
    server.get = silence
    asked = order(server.url, ExecutorKind.GITLAB, timeout_s=0.1)

    assert (await pipelines(GitLab(), client).ask(asked)).kind is K.LOST
    assert server.received[0].raw_path == "/it/pipelines?name=p_1"


async def test_a_dry_run_sends_nothing_and_shows_the_request(
    server: ControlPlaneServer,
) -> None:
    executors = Executors({ExecutorKind.REHEARSAL: Rehearsal()})
    rehearsed = order(server.url, ExecutorKind.REHEARSAL)

    said = await executors.send(rehearsed)

    assert said == await executors.ask(rehearsed)
    assert said.kind is K.SUCCEEDED
    assert isinstance(said.body, dict)
    assert said.body["rehearsal"] == "nothing is sent"
    assert server.received == []


@pytest.mark.parametrize("kind", list(ExecutorKind))
async def test_an_unsupported_kind_is_not_sent_and_says_where_to_look(
    kind: ExecutorKind,
) -> None:
    lonely = order("https://c.example", kind)

    assert (await Executors({}).send(lonely)).kind is K.NOT_SENT
    assert (await Executors({}).ask(lonely)).kind is K.LOST
    assert where_to_look(replace(lonely, product="x"))


@pytest.mark.parametrize("odd", [*ODD, '{"display_title": null, "id": null}'])
async def test_an_odd_run_of_the_list_does_not_hide_ours(
    server: ControlPlaneServer, client: httpx.AsyncClient, odd: str
) -> None:
    ours = (
        '{"id": 5, "display_title": "rollback p_1", "status": "completed", "conclusion": "success"}'
    )
    server.get = says(200, text=f'{{"workflow_runs": [{odd}, {ours}, {odd}]}}')

    answer = await pipelines(GitHub(), client).ask(order(server.url))

    assert (answer.kind, answer.body) == (K.SUCCEEDED, {"run": 5, "status": "success"})
