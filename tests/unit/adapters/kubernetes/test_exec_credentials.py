"""Credentials that a program gives: run as rarely as possible, with as little data as possible."""

import asyncio
import json
import os
import select
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from adapters.errors import AdapterError, BadAnswer, Refused, TimedOut, Unreachable
from adapters.http.egress import LocalHosts, confined_to
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access, AccessInvalid, from_kubeconfig
from adapters.kubernetes.exec_credentials import (
    LEAST_S,
    ExecCredentials,
    Plugin,
    run_plugin,
)
from tests.fakes.proxy import proxying
from tests.fixtures_http import serving
from tests.fixtures_tls import certificate, serving_tls
from tools.errors import CapabilityUnavailable, UpstreamFailed

V1 = "client.authentication.k8s.io/v1"
CANARY = "canary-5Rw0nKf2Zq8LmT4v"


@pytest.fixture(autouse=True)
def _programs_start(request: pytest.FixtureRequest) -> None:
    """Starting a program and reading a kubeconfig block, here on the loop."""
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


def program(folder: Path, text: str) -> str:
    path = folder / "credentials.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return "./credentials.sh"


def answer(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def kubeconfig(
    folder: Path, server: str, command: str, cluster: dict[str, Any] | None = None, **more: Any
) -> Path:
    user = {"exec": {"apiVersion": V1, "command": command, "interactiveMode": "Never", **more}}
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "eks",
                "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "eks", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path


def opened(stack: AsyncExitStack, access: Access) -> KubernetesApi:
    api = KubernetesApi(access)
    stack.push_async_callback(api.aclose)
    return api


def takes(*tokens: str) -> Callable[[web.Request], Any]:
    async def handler(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") in {f"Bearer {each}" for each in tokens}
        return web.Response(text="{}", status=200 if known else 401)

    return handler


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_a_program_runs_without_a_shell_and_with_a_minimal_environment(
    version: str, tmp_path: Path, stack: AsyncExitStack
) -> None:
    url = await stack.enter_async_context(serving(takes("t-1")))
    said = answer(version, token="t-1")
    text = f'echo "$1" > args; echo "$KUBERNETES_EXEC_INFO" > info; env > env; echo \'{said}\''
    command = program(tmp_path, f'cd "$(dirname "$0")"\n{text}')
    path = kubeconfig(
        tmp_path, url, command, apiVersion=version, args=["$(touch made); `id`"],
        env=[{"name": "AWS_PROFILE", "value": "sre"}], provideClusterInfo=True,
    )  # fmt: skip
    ours = {"PATH": os.environ["PATH"], "AWS_REGION": "eu-west-1", "SLACK_BOT_TOKEN": CANARY}

    assert await opened(stack, from_kubeconfig(path, "", ours)).get("/api") == b"{}"

    assert (tmp_path / "args").read_text() == "$(touch made); `id`\n"
    told = json.loads((tmp_path / "info").read_text())
    assert told["apiVersion"] == version
    assert told["spec"] == {"interactive": False, "cluster": {"server": url}}
    env = (tmp_path / "env").read_text()
    assert {"AWS_PROFILE=sre", "AWS_REGION=eu-west-1"} <= set(env.splitlines())
    assert CANARY not in env


class Runs:
    """Gives one answer after the other, the last one from then on."""

    def __init__(self, *answers: str | AdapterError) -> None:
        self.answers = list(answers)
        self.count = 0
        self.at = 100.0

    async def __call__(self, _plugin: Plugin) -> bytes:
        self.count += 1
        await asyncio.sleep(0)
        found = self.answers[min(self.count, len(self.answers)) - 1]
        if isinstance(found, AdapterError):
            raise found
        return found.encode("utf-8", "surrogatepass")

    def credentials(self) -> ExecCredentials:
        return ExecCredentials(Plugin("aws", (), {}, V1, "{}"), self, lambda: self.at)


def expiring(seconds: float) -> str:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return answer(token=f"t{seconds:g}", expirationTimestamp=at.strftime("%Y-%m-%dT%H:%M:%SZ"))


async def test_a_program_runs_once_for_all_callers_and_again_before_the_expiry() -> None:
    runs = Runs(expiring(840))
    credentials = runs.credentials()

    await asyncio.gather(*(credentials.now() for _ in range(20)))
    assert runs.count == 1
    runs.at += 770
    await credentials.now()
    assert runs.count == 1
    runs.at += 20
    await credentials.now()
    assert runs.count == 2


@pytest.mark.parametrize("seconds", [-86_400, 0, 30], ids=["a day ago", "now", "soon"])
async def test_a_clock_difference_does_not_run_the_program_for_every_request(
    seconds: float,
) -> None:
    runs = Runs(expiring(seconds))
    credentials = runs.credentials()

    for _ in range(10):
        runs.at += LEAST_S / 20
        await credentials.now()

    assert runs.count == 1


async def test_a_failed_run_is_not_repeated_at_once() -> None:
    runs = Runs(Unreachable("aws ended with 255"), answer(token="t"))
    credentials = runs.credentials()

    for _ in range(3):
        with pytest.raises(Unreachable, match="255"):
            await credentials.now()
    runs.at += LEAST_S

    assert (await credentials.now()).token == "t"
    assert runs.count == 2


async def test_a_refused_token_is_requested_once_more(
    tmp_path: Path, stack: AsyncExitStack
) -> None:
    url = await stack.enter_async_context(serving(takes("new")))
    runs = Runs(answer(token="old"), answer(token="new"))
    api = opened(stack, from_kubeconfig(kubeconfig(tmp_path, url, "aws")))
    api._plugin = runs.credentials()
    await api._plugin.now()
    runs.at += LEAST_S

    answers = await asyncio.gather(*(api.get("/api") for _ in range(8)))

    assert answers == [b"{}"] * 8
    assert runs.count == 2


async def test_a_permanently_refused_token_does_not_run_the_program_each_time(
    tmp_path: Path, stack: AsyncExitStack
) -> None:
    url = await stack.enter_async_context(serving(takes()))
    runs = Runs(answer(token="old"))
    api = opened(stack, from_kubeconfig(kubeconfig(tmp_path, url, "aws")))
    api._plugin = runs.credentials()

    for _ in range(5):
        with pytest.raises(UpstreamFailed):
            await api.get("/api")

    assert runs.count == 1


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[" * 1500,
        CANARY,
        json.dumps({"apiVersion": V1, "kind": "Secret", "status": {"token": CANARY}}),
        answer("client.authentication.k8s.io/v1alpha1", token=CANARY),
        answer(token=""),
        answer(clientCertificateData=CANARY),
        answer(token=f"{CANARY}\r\nX-Other: 1"),
        answer(token=f"{CANARY}\u00fc"),
        '{"apiVersion":"' + V1 + '","kind":"ExecCredential","status":{"token":"\udc80"}}',
        answer(token=CANARY, expirationTimestamp=2**128),
        answer(token=CANARY, expirationTimestamp="tomorrow"),
    ],
)
async def test_an_invalid_answer_is_refused_without_an_echo(said: str) -> None:
    with pytest.raises(BadAnswer) as refused:
        await Runs(said).credentials().now()

    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"echo 'no credentials for {CANARY}{CANARY}' >&2; exit 255", "ended with 255: no cred"),
        ("exit 1", "ended with 1$"),
        ("head -c 2000000 /dev/zero", "more than"),
        ("head -c 2000000 /dev/zero >&2; exit 3", "ended with 3"),
    ],
)
async def test_a_failed_program_is_reported_briefly(text: str, words: str, tmp_path: Path) -> None:
    command = tmp_path / program(tmp_path, text)

    with pytest.raises(AdapterError, match=words) as failed:
        await run_plugin(Plugin(str(command), (), {"PATH": os.environ["PATH"]}, V1, "{}"))

    assert CANARY not in str(failed.value)


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(Unreachable, match="aws-of-nowhere cannot be run: No such file"):
        await run_plugin(Plugin("aws-of-nowhere", (), {}, V1, "{}"))


def ended(pid: int) -> bool:
    """Whether it is gone, or goes within 5 s."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 5)[0])
    finally:
        os.close(process)


async def test_a_slow_program_is_killed_with_its_children(tmp_path: Path) -> None:
    command = tmp_path / program(tmp_path, 'sleep 60 & echo $! > "$1"; wait')
    child = tmp_path / "child"
    plugin = Plugin(str(command), (str(child),), {"PATH": os.environ["PATH"]}, V1, "{}")

    with pytest.raises(TimedOut, match=r"gave no credentials within 1\.5 s"):
        await run_plugin(plugin, timeout_s=1.5)

    assert ended(int(child.read_text()))


async def test_a_confined_process_runs_no_program(tmp_path: Path, stack: AsyncExitStack) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:9", program(tmp_path, "true")))

    with confined_to(LocalHosts()), pytest.raises((CapabilityUnavailable, UpstreamFailed)) as no:
        await opened(stack, access).get("/api")
    assert isinstance(no.value.__cause__, Refused)


async def test_a_program_may_return_a_certificate_and_later_another(
    tmp_path: Path, stack: AsyncExitStack
) -> None:
    server, own = certificate(tmp_path, "localhost"), certificate(tmp_path, "client.test")
    other = certificate(tmp_path, "other.test")

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text="{}")

    url = await stack.enter_async_context(serving_tls(server, handler, clients=own))
    pairs = [
        answer(clientCertificateData=pem.read_text(), clientKeyData=pem.read_text())
        for pem in (other, own)
    ]
    runs = Runs(*pairs)
    cluster = {"certificate-authority": str(server)}
    api = opened(stack, from_kubeconfig(kubeconfig(tmp_path, url, "aws", cluster)))
    api._plugin = runs.credentials()

    with pytest.raises(CapabilityUnavailable):
        await api.get("/api")
    await api._plugin.now(await api._plugin.now())
    runs.at += LEAST_S
    await api._plugin.now(await api._plugin.now())

    assert await api.get("/api") == b"{}"


async def test_the_cluster_s_proxy_is_used(tmp_path: Path, stack: AsyncExitStack) -> None:
    url = await stack.enter_async_context(serving(takes("t")))
    proxy = await stack.enter_async_context(proxying())
    path = kubeconfig(tmp_path, url, "aws", {"proxy-url": f"http://{proxy.address}"})
    api = opened(stack, from_kubeconfig(path))
    api._plugin = Runs(answer(token="t")).credentials()

    assert await api.get("/api") == b"{}"
    assert len(proxy.heads) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "apiVersion must be one of"),
        ({"interactiveMode": "Always"}, "interactive programs are not supported"),
        ({"command": ""}, "not a readable kubeconfig"),
    ],
)
def test_a_program_that_cannot_run_stops_the_start(
    more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(AccessInvalid, match=words):
        from_kubeconfig(kubeconfig(tmp_path, "https://c", **{"command": "aws", **more}))
