"""A real small model on loopback, as weak as they come: the recorded incidents still end well.

Where it gives no evidence `triage` answers beneath it, which is part of the product; what the model
itself did is printed. `make test-model` fetches model and server; nothing of them is in the locks.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from adapters.llm.first_look.digest import MOST_TOKENS, as_read
from adapters.llm.first_look.tokens import most_tokens_of
from bot.cli.ask import answer_here
from bot.demo.setup import demo_settings
from bot.settings.model import Settings
from tests.fixtures_first_look import fifty_hostile, looked
from tests.plain_logging import logging_put_back

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

FOLDER = Path(__file__).parents[2] / "build" / "small-model"
START_S = 300.0
CONTEXT_TOKENS = 12_288
# As few as an investigation needs: a prompt of all tools is minutes on two cores.
TOOLS = [
    "core__sweep_*", "core__get_recent_deploys", "core__get_logs", "core__report_findings",
    "core__propose_action",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _opens_files(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Its address, once the model is loaded."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python, model = FOLDER / "venv" / "bin" / "python", FOLDER / "model.gguf"
    serve = Path(__file__).with_name("serve.py")
    log = (FOLDER / "server.log").open("wb")
    command = [str(python), str(serve), str(model), str(port), str(CONTEXT_TOKENS)]
    with log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _until_healthy(url, process)
            yield url
        finally:
            process.kill()


def _until_healthy(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"the model's server did not start; see {FOLDER / 'server.log'}")


def settings_of(folder: Path, url: str, *, first_look: bool) -> Settings:
    """The demo's, asking that model; with what a small context takes."""
    demo = demo_settings(folder)
    llm = {
        "default_provider": "openai",
        "first_look": first_look,
        "providers": {"openai": {"api_key": "none", "base_url": url, "model": "small",
                                 "timeout": "900s", "max_tokens": 400}},
        "models": {"small": {"context_tokens": CONTEXT_TOKENS, "api": "chat"}},
    }  # fmt: skip
    tree = {name: getattr(demo, name) for name in Settings.model_fields}
    policy = {"toolsets": {"investigate": {"tools": TOOLS}}}
    return Settings.model_validate({**tree, "llm": llm, "policy": policy})


@cache
def _asked(channel: str, url: str, folder: Path, *, first_look: bool) -> Mapping[str, Any]:
    began = time.monotonic()
    with logging_put_back():
        settings = settings_of(folder, url, first_look=first_look)
        answer = asyncio.run(
            answer_here(settings, "why is checkout slow?", channel, lambda _: None)
        )
    own: dict[str, Any] = {"first_look": first_look, "seconds": round(time.monotonic() - began)}
    kept = ("provider", "rounds", "usage", "verdict", "suspects", "notices", "answer")
    own |= {name: answer[name] for name in kept}
    calls = answer["tool_calls"]
    assert isinstance(calls, list)
    own["calls"] = [str(one["name"]) for one in calls if isinstance(one, dict)]
    sys.stderr.write(f"\n{channel}: {json.dumps(own, indent=1, ensure_ascii=False)}\n")
    return answer


@pytest.mark.parametrize(
    ("channel", "verdict", "suspect"),
    [
        ("incident-checkout", "cause", ["checkout"]),
        ("incident-payments", "cause", ["payments-db"]),
        ("incident-quiet", "healthy", []),
    ],
)
def test_the_recorded_incidents_end_with_the_right_verdict(
    channel: str, verdict: str, suspect: list[str], server: str, tmp_path: Path
) -> None:
    answer = _asked(channel, server, tmp_path, first_look=True)

    assert answer["verdict"] == verdict
    assert [one["product"] for one in answer["suspects"][:1]] == suspect


def _counted(url: str, text: str) -> int:
    asked = urllib.request.Request(
        f"{url}/tokenize",
        json.dumps({"content": text}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return len(json.load(answer)["tokens"])


def test_a_digest_needs_no_more_tokens_than_were_estimated(
    server: str,
) -> None:
    read = as_read(looked(*fifty_hostile()))
    texts = [m.tool_result.content for m in read.messages if m.tool_result]
    real = [_counted(server, text) for text in texts]

    assert sum(real) <= sum(map(most_tokens_of, texts)) <= MOST_TOKENS
