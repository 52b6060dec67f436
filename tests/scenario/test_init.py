"""`kortex init` writes a configuration that `kortex check` passes, or says why not and writes nothing."""

import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from blockbuster import BlockBuster

from bot.cli import demo_server
from bot.cli.config_template import Answers, Confirming, configuration
from bot.demo.setup import local
from bot.demo.workspace.app import serving
from bot.demo.workspace.state import Workspace
from bot.settings.reading import load, parse
from bot.upkeep.signals import TAKEN, Signals
from tests.fakes.loki_server import LokiServer
from tests.fixtures_http import serving as answering
from tests.kortex_command import ran
from tests.plain_logging import logging_put_back

ALL = ("--logs", "none", "--metrics", "none", "--confirm", "none")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _nothing_blocks_the_loop: BlockBuster
) -> Iterator[None]:
    _nothing_blocks_the_loop.deactivate()
    monkeypatch.chdir(tmp_path)
    for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with logging_put_back():
        yield


@pytest.fixture
async def workspace(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workspace]:
    workspace = Workspace()
    async with serving(workspace):
        monkeypatch.setenv("SLACK_BOT_TOKEN", workspace.bot_token)
        monkeypatch.setenv("SLACK_APP_TOKEN", workspace.app_token)
        yield workspace


def on_any_port(config: Path) -> Path:
    config.write_text(f"{config.read_text()}\n[http]\nport = 0\n")
    return config


def files_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def new_prometheus(request: web.Request) -> web.StreamResponse:
    """One that holds nothing yet."""
    nothing = {"resultType": "vector", "result": []}
    data: object = nothing if "query" in request.path else []
    return web.json_response({"status": "success", "data": data})


def api(workspace: Workspace) -> tuple[str, str]:
    return "--api-base-url", f"{workspace.origin}/api/"


async def test_check_passes_what_init_writes(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    async with answering(new_prometheus) as metrics, local(LokiServer([]).app()) as logs:
        wrote = await ran(
            "init", "--logs", logs, "--metrics", metrics, "--confirm", "@responders", *api(workspace)
        )  # fmt: skip
        told = capsys.readouterr().out
        config = on_any_port(Path("kortex.toml"))
        passed = await ran("check", "--json")

    rows = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert (wrote, passed) == (0, 0)
    assert [rows[part]["ok"] for part in ("slack", "database", "provider triage")] == [True] * 3
    assert "loki answers" in rows["logs"]["detail"]
    assert "prometheus answers" in rows["metrics"]["detail"]
    assert load(config).roles["responder"].usergroups == ("S0RESPOND1",)
    assert "kortex check, then kortex run" in told


async def test_the_audit_key_exists_before_the_first_run_and_is_kept(tmp_path: Path) -> None:
    await ran("init", *ALL, "--api-base-url", "none")
    variables = tmp_path / "kortex.env"
    kept = variables.read_text()

    assert variables.stat().st_mode & 0o777 == 0o600
    (line,) = [each for each in kept.splitlines() if each.startswith("KORTEX_AUDIT_KEY=")]
    key = line.partition("=")[2]
    settings = load(tmp_path / "kortex.toml", {"KORTEX_AUDIT_KEY": key})
    assert settings.slack.api_base_url == "https://slack.com/api/"
    assert (len(key), settings.audit.key.get_secret_value()) == (64, key)

    assert await ran("init", *ALL, "--force") == 0
    assert variables.read_text() == kept


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("KORTEX_AUDIT_KEY=a\n", "was not changed.\n"),
        ("export KORTEX_AUDIT_KEY=a\n", "was not changed.\n"),
        ("# KORTEX_AUDIT_KEY=\n", "Add KORTEX_AUDIT_KEY to it before the first run.\n"),
        ("", "Add KORTEX_AUDIT_KEY to it before the first run.\n"),
    ],
)
async def test_init_names_the_audit_key_that_an_existing_file_lacks(
    kept: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kortex.env").write_text(kept)
    assert await ran("init", *ALL) == 0
    assert said in capsys.readouterr().out
    assert (tmp_path / "kortex.env").read_text() == kept


async def test_init_overwrites_nothing_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kortex.toml"
    config.write_text("mine")
    config.chmod(0o640)

    assert await ran("init", *ALL) == 2
    assert "kortex.toml exists. --force replaces it" in capsys.readouterr().err
    assert (config.read_text(), (tmp_path / "kortex.env").exists()) == ("mine", False)

    assert await ran("init", *ALL, "--force") == 0
    assert (load(config, {}).slack.mode, config.stat().st_mode & 0o777) == ("socket", 0o640)
    assert files_in(tmp_path) == ["kortex.env", "kortex.toml"]


async def test_init_without_a_terminal_names_the_missing_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert await ran("init", "--metrics", "none") == 2
    assert "missing --logs, --confirm: there is no terminal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--logs", "loki:3100"), "--logs wants an address such as"),
        (("--logs", "http://loki:99999"), "--logs wants an address such as"),
        (("--logs", 'http://loki"\n[admins]'), "--logs wants an address such as"),
        (("--logs", "http://loki/\udcff"), "--logs wants an address such as"),
        (("--metrics", "http://user:secret-word@prom"), "--metrics holds a password"),
        (("--bot-token", "xoxb-secret-word"), "--bot-token wants the name of a variable"),
        (("--bot-token", "none"), "--bot-token wants the name of a variable"),
        (("--app-token", "NOT A NAME"), "--app-token wants the name of a variable"),
        (("--products", 'web"'), "--products wants names as your metrics have them"),
        (("--confirm", "@sre"), "export SLACK_BOT_TOKEN first"),
        (("--confirm", "@s\nre"), "--confirm wants names such as @sre"),
        (("--api-base-url", "slack.com"), "--api-base-url wants an address"),
        (("--config", "kortex.env"), "files of that name hold variables"),
        (("--config", "nowhere/kortex.toml"), "nowhere/kortex.toml was not written"),
    ],
)
async def test_an_unreadable_answer_is_reported_and_nothing_is_written(
    tmp_path: Path, changed: tuple[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ran("init", *ALL, *changed) in (1, 2)

    told = capsys.readouterr().err
    assert words in told
    assert "secret-word" not in told
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"ok": False, "error": "plan_upgrade_required"}, "need a paid Slack plan"),
        ({"ok": True, "usergroups": []}, "has no user groups (they need a paid plan)"),
        ({"ok": False, "error": "missing_scope"}, "the app has no scope usergroups:read"),
        ({"ok": False, "error": "invalid_auth"}, "rejects the bot token (invalid_auth)"),
        ({"ok": False, "error": "ratelimited"}, "did not list its user groups"),
        ({"ok": True, "usergroups": [{"id": 10**40}]}, "unreadable answer)"),
        ({"ok": True, "usergroups": [{"id": 'S0"]\n', "handle": "sre"}]}, "unreadable answer)"),
        ([[]], "not an answer)"),
        (
            {"ok": True, "usergroups": [{"id": "S0123ABCD", "handle": "sres", "name": "SREs"}]},
            "no user group is called 'sre'; did you mean @sres?",
        ),
        (
            {"ok": True, "usergroups": [
                {"id": "S0123ABC1", "handle": "a", "name": "sre"},
                {"id": "S0123ABC2", "handle": "b", "name": "SRE"},
            ]},
            "2 user groups are named 'sre'; give the handle",
        ),
        (
            {"ok": True, "usergroups": [{"id": i, "name": "sre"} for i in ("S0123ABC1", "S0123ABC2")]},
            "2 user groups are named 'sre'; give the id of one",
        ),
        ({"ok": False, "error": "\x1b[2Jgone\x07\nWrote it" + "!" * 99_999}, "its user groups (gone Wrote it!"),
        (
            {"ok": True, "usergroups": [{"id": "S0123ABC1", "handle": "\x1b]0;mine\x07a\ud800\u202e"}]},
            "there are @a.",
        ),
    ],
)  # fmt: skip
async def test_a_group_that_slack_refuses_is_reported_with_what_to_do(
    answer: object,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-secret-word")

    async def slack(_request: web.Request) -> web.StreamResponse:
        return web.json_response(answer)

    async with answering(slack) as url:
        code = await ran("init", *ALL, "--confirm", "@sre", "--api-base-url", f"{url}/api/")

    told = capsys.readouterr().err
    assert (code, words in told, "secret-word" in told) == (2, True, False)
    assert (len(told) < 1000, told.removesuffix("\n").isprintable()) == (True, True)
    assert files_in(tmp_path) == []


async def test_init_asks_at_a_terminal_until_the_answer_is_valid(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("MY_SECRET", "s")
    keyboard, terminal = os.openpty()
    typed = (
        "carrier pigeon", "http", "", "MY_SECRET", "loki", "http://loki:3100", "", "checkout, web",
        "@nobody",
        "@responders, U0MEMBER01",
    )  # fmt: skip
    os.write(keyboard, "".join(f"{line}\n" for line in typed).encode())
    with os.fdopen(terminal, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code = await ran("init", *api(workspace))
        monkeypatch.undo()
    os.close(keyboard)

    told = capsys.readouterr().out
    settings = load(tmp_path / "kortex.toml", {"MY_SECRET": "s"})
    assert code == 0
    assert "no user group is called 'nobody'" in told
    assert (settings.slack.mode, settings.slack.signing_secret.get_secret_value()) == ("http", "s")
    assert (settings.observe.logs.url, settings.observe.metrics.kind) == (
        "http://loki:3100",
        "none",
    )
    assert settings.roles["responder"].users == ("U0MEMBER01",)
    assert settings.llm.default_provider == "openai"
    assert settings.channels[0].products == ("checkout", "web")


def test_a_local_slack_says_what_to_configure(monkeypatch: pytest.MonkeyPatch) -> None:
    signals, told = Signals(), list[str]()

    def hear(words: str, **_: object) -> None:
        told.append(words)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(demo_server, "print", hear, raising=False)
    before = [signal.getsignal(number) for number in TAKEN]
    try:
        signals.take()
        assert demo_server.demo_workspace(0, None, signals) == 0
    finally:
        for number, handler in zip(TAKEN, before, strict=True):
            signal.signal(number, handler)

    origin, tokens = (
        re.search(r"http://127\.0\.0\.1:\d+", told[0]),
        re.findall("xoxb-|xapp-", told[0]),
    )
    assert origin
    assert f"--api-base-url {origin[0]}/api/" in told[0]
    assert "#incident-checkout C0CHECKOUT, #incident-payments C0PAYMENTS" in told[0]
    assert "#random" not in told[0]
    assert (tokens, told[1:]) == (["xoxb-", "xapp-"], ["stopping ..."])


def test_the_example_action_is_valid_once_uncommented() -> None:
    answers = Answers(
        mode="socket", bot_token="BOT", other_secret="OTHER", api_base_url="", logs="", metrics="",
        provider="triage", products=[], confirming=Confirming({}, []),
    )  # fmt: skip
    text = configuration(answers)
    before, block = text.split("# [[actions]]\n")
    whole = f"{before}[[actions]]\n" + re.sub("^# ", "", block, flags=re.MULTILINE)

    settings = parse(whole, "kortex.toml", {"BOT": "b", "OTHER": "o"})
    (action,) = settings.model_dump()["actions"]
    assert (action["name"], action["endpoint"]["kind"]) == ("rollback-deploy", "rehearsal")
    assert action["reversible"]


@pytest.mark.parametrize("mode", ["socket", "http"])
@pytest.mark.parametrize("provider", ["anthropic", "triage"])
@pytest.mark.parametrize("url", ["", "http://host:1/é?a='\\"])
def test_any_answers_give_a_configuration_that_parses_back(
    mode: str, provider: str, url: str
) -> None:
    answers = Answers(
        mode=mode, bot_token="BOT", other_secret="OTHER", api_base_url="http://127.0.0.1:1/api/",
        logs=url, metrics=url, provider=provider, products=["a/b"],
        confirming=Confirming({"S0123ABCD": "@sre é\u2028"}, ["U0123ABCD"]),
    )  # fmt: skip

    settings = parse(configuration(answers), "kortex.toml", {"BOT": "b", "OTHER": "o"})

    assert settings.slack.bot_token.get_secret_value() == "b"
    assert (settings.observe.logs.url, settings.observe.metrics.url) == (url, url)
    assert settings.slack.api_base_url == "http://127.0.0.1:1/api/"
    assert settings.llm.default_provider == provider
    assert settings.channels[0].confirm == ("responder",)
