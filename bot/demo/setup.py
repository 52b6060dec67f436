"""The parts of `kortex demo`, with or without its page: `demo.toml` filled in, local servers, an alert."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Final

from aiohttp import web

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.simulator.incidents import RecordedIncidents
from adapters.recorded.simulator.topology import SERVICES
from bot.app.backend_selection import SystemClock
from bot.demo.control_plane import check_token, create_control_plane
from bot.settings.environment import environment
from bot.settings.model import Settings
from bot.settings.reading import parse

ROTA_PATH = "/on-call"
SCRIPT: Final = "alert.sh"
_ALERT: Final = """#!/bin/sh
# Fires the alert of the demo's incident: a thread in #incident-checkout, investigated at once.
# `sh {script} resolved` ends it.
status=${{1:-firing}}
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
case $status in firing) starts=$now ends=0001-01-01T00:00:00Z;; *) starts={began} ends=$now;; esac
curl -sS -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{
  "version": "4", "groupKey": "demo", "alerts": [{{"status": "'"$status"'", "fingerprint": "demo",
  "labels": {{"alertname": "HighLatency", "service": "checkout", "severity": "critical"}},
  "annotations": {{"summary": "p99 of checkout is above 1 s"}},
  "startsAt": "'"$starts"'", "endsAt": "'"$ends"'"}}]}}' \\
  http://127.0.0.1:{port}/alerts/v1/alertmanager
echo
"""
_ONLY_TO_ACT = (
    "KORTEX_DEMO_APP_TOKEN",
    "KORTEX_DEMO_SIGNING_SECRET",
    "KORTEX_DEMO_CONTROL_PLANE_TOKEN",
    "KORTEX_DEMO_CONTROL_PLANE_READ_TOKEN",
)


def demo_settings(folder: Path, values: Mapping[str, str] | None = None) -> Settings:
    """`demo.toml` filled in. `values` are the addresses and tokens of the local servers."""
    text = resources.files("bot.demo").joinpath("demo.toml").read_text(encoding="utf-8")
    known = {
        "KORTEX_DEMO_DIRECTORY": str(folder),
        "KORTEX_DEMO_CONTROL_PLANE": "http://127.0.0.1:9",
        "KORTEX_DEMO_ON_CALL": f"http://127.0.0.1:9{ROTA_PATH}",
        "KORTEX_DEMO_AUDIT_KEY": secrets.token_hex(32),
        **(values or {}),
    }
    return parse(text, "demo.toml", {**environment(), **known})


def demo_text(values: Mapping[str, str]) -> str:
    """`demo.toml` with these of its `${NAME}`s filled in, for commands that look at the demo.

    They order nothing and receive nothing: what only that needs is left empty.
    """
    text = resources.files("bot.demo").joinpath("demo.toml").read_text(encoding="utf-8")
    for name, value in {**values, **dict.fromkeys(_ONLY_TO_ACT, "")}.items():
        text = text.replace(f"${{{name}}}", json.dumps(value)[1:-1])  # as in a string of TOML
    return text


def write_private(path: Path, text: str) -> None:
    """A new file that only its owner reads. Raises OSError."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def plane_values(url: str, token: str, read_token: str) -> Mapping[str, str]:
    return {
        "KORTEX_DEMO_CONTROL_PLANE": url,
        "KORTEX_DEMO_CONTROL_PLANE_TOKEN": token,
        "KORTEX_DEMO_CONTROL_PLANE_READ_TOKEN": read_token,
    }


def demo_control_plane(
    token: str, read_token: str, incidents: RecordedIncidents
) -> web.Application:
    """The control plane of the demo: a confirmed rollback changes the incidents."""
    hosts = {s.name: [s.host(number) for number in range(s.hosts)] for s in SERVICES}
    return create_control_plane(
        token, incidents.running(), read_token=read_token, hosts=hosts, tell=incidents.rolled_back
    )


def demo_incidents() -> RecordedIncidents:
    return RecordedIncidents(SystemClock(), UnsealedCodec())


def create_on_call(token: str, emails: Sequence[str]) -> web.Application:
    """An on-call rota that names the same people all day: `GET /on-call` → `{"people": [{"email": …}]}`.

    It shows what `[roles.NAME.oncall]` reads: a JSON answer with e-mail addresses in it, for a token.
    """

    async def now(request: web.Request) -> web.Response:
        check_token(request, token)
        return web.json_response({"people": [{"email": email} for email in emails]})

    app = web.Application()
    app.router.add_get(ROTA_PATH, now)
    return app


def alert_script(port: int, token: str) -> str:
    """For `sh`, with curl. The token is the demo's own, good for this and nothing else."""
    began = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _ALERT.format(script=SCRIPT, began=began, token=token, port=port)


@asynccontextmanager
async def local(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
