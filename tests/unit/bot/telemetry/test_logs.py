"""One JSON record a line, without secrets, for any program or library."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from dbos._logger import init_logger

from bot.settings.model import Settings
from bot.telemetry import logs
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_service import captured_log

TOKEN = "xoxb-canary-1234567890-abcdef"
SETTINGS = Settings.model_validate({"slack": {"bot_token": TOKEN}})


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    with captured_log(SETTINGS) as log:
        yield log


def records(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().strip("\n").split("\n")]


def test_a_record_is_one_line_of_json_with_its_fields(written: io.StringIO) -> None:
    structlog.get_logger("kortex").info("turn_ended", turn="t1", rounds=3)

    (record,) = records(written)
    assert (record["event"], record["level"], record["turn"], record["rounds"]) == (
        "turn_ended",
        "info",
        "t1",
        3,
    )
    assert record["timestamp"].endswith("Z")


def test_a_turns_session_is_logged_and_a_secret_in_its_place_is_not(
    written: io.StringIO,
) -> None:
    session = "session:T0KORTEX01:C0PAYMENTS:1795404185.039481"
    structlog.get_logger("kortex").info("turn_ended", session=session)
    structlog.get_logger("kortex").info("turn_ended", session=TOKEN)

    good, secret = records(written)
    assert good["session"] == session
    assert TOKEN not in secret["session"]


@pytest.mark.parametrize(
    "text",
    [
        "\n2026-01-01 level=ERROR user=admin",
        '"}\n{"event": "forged"}',
        "\x1b[2J\r\u2028 %s {} \x00",
        "\ud800 half a pair",
    ],
)
def test_user_text_cannot_forge_a_record(written: io.StringIO, text: str) -> None:
    structlog.get_logger("kortex").info("asked", text=text)

    (record,) = records(written)
    assert record["event"] == "asked"


@pytest.mark.parametrize(
    "log",
    [
        lambda: structlog.get_logger("kortex").warning("failed", why=f"token {TOKEN}"),
        lambda: structlog.get_logger("kortex").warning(f"failed with {TOKEN}"),
        lambda: structlog.get_logger("kortex").error("failed", exc_info=ValueError(TOKEN)),
        lambda: logging.getLogger("some.library").error("failed with %s", TOKEN),
        lambda: logging.getLogger("some.library").error("failed", exc_info=ValueError(TOKEN)),
    ],
    ids=["field", "event", "traceback", "library", "library traceback"],
)
def test_a_secret_is_masked_in_every_part_of_a_record(written: io.StringIO, log: Any) -> None:
    log()

    (record,) = records(written)
    assert record["event"].startswith("failed")
    assert "canary" not in written.getvalue()


@pytest.mark.parametrize("name", ["slack_bolt", "slack_sdk.web", "aiohttp.access", "httpx", "dbos"])
def test_libraries_that_log_payloads_are_silenced(written: io.StringIO, name: str) -> None:
    logging.getLogger(name).warning("payload %s", TOKEN)

    assert written.getvalue() == ""


def test_an_unredactable_record_is_not_written() -> None:
    broken = FakeRedactor(fails=True)

    assert logs._Redacting(broken)(None, "", {"event": TOKEN}) == (
        '{"event":"log_record_not_redactable"}'
    )


def test_without_a_redactor_only_the_events_name_is_written() -> None:
    line = logs._Redacting(None)(None, "", {"event": "started", "level": "info", "token": TOKEN})

    assert json.loads(line) == {"event": "started", "level": "info"}


@pytest.mark.parametrize(
    "odd",
    [2**64, -(2**70), float("nan"), float("inf"), -0.0, 10**400, 10**4300, 10**6000, ValueError("\ud800")],
    ids=["2^64", "-2^70", "nan", "inf", "-0", "10^400", "10^4300", "10^6000", "error"],
)  # fmt: skip
@pytest.mark.parametrize("text", ["x", "\ud800"])
def test_a_record_of_any_value_is_written(odd: object, text: str) -> None:
    event = {
        "event": "read",
        "level": "info",
        "odd": odd,
        "in": [{"a": odd, 7: text}],
        "text": text,
    }

    line = json.loads(logs._Redacting(FakeRedactor())(None, "", event))

    assert line["event"] == "read"
    assert line["odd"] == line["in"][0]["a"]


class Broken(io.StringIO):
    """Standard error whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_an_unwritable_record_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with captured_log(SETTINGS):
        monkeypatch.setattr("sys.stderr", Broken())
        logs.configure(FakeRedactor())
        structlog.get_logger("kortex").error("turn_ended")
        logging.getLogger("a.library").warning("careful")


def test_the_workflow_library_logs_only_through_our_redactor(
    written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    init_logger()  # as its first start does
    logging.getLogger("dbos").error("connection lost: %s", TOKEN)

    (record,) = records(written)
    assert record["logger"] == "dbos"
    assert TOKEN not in written.getvalue()
    assert capsys.readouterr().err == ""
    names = {each.name for each in logging.getLogger("dbos").handlers}
    assert "__dbos_console_log_handler__" not in names


def test_a_closed_log_stream_breaks_no_writer(written: io.StringIO) -> None:
    kept = written.getvalue
    written.close()

    logging.getLogger("dbos").error("connection lost")
    structlog.get_logger("kortex").error("as well")

    with pytest.raises(ValueError, match="closed"):
        kept()
