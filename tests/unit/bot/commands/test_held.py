"""What all workers of a service hold, whatever became of the file meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.commands.held import Held
from bot.settings.reading import load

BEFORE = """
[roles.responder]
users = ["U1"]
[llm.budget]
daily_usd_limit = 1.0
"""
Written = Callable[[str], None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "kortex.toml"
    file.write_text(BEFORE)
    return file


@pytest.fixture
def held(file: Path) -> Held:
    return Held(load(file), lambda: load(file), ("roles",))


def test_what_nobody_asked_to_reload_is_not_held_and_told(file: Path, held: Held) -> None:
    file.write_text(BEFORE.replace("1.0", "2.0").replace("U1", "U2"))
    with capture_logs() as lines:
        held.tell()

    assert held.settings.llm.budget.daily_usd_limit == 1.0
    assert held.settings.roles["responder"].users == ("U1",)
    assert [(line["event"], line["changed"], line["needs_restart"]) for line in lines] == [
        ("config.file_differs", ["roles"], ["llm"])
    ]


def test_a_reload_that_was_taken_is_held_but_for_what_waits_for_a_restart(
    file: Path, held: Held
) -> None:
    file.write_text(BEFORE.replace("1.0", "2.0").replace("U1", "U2"))
    held.asked()
    held.taken()

    assert held.settings.roles["responder"].users == ("U2",)
    assert held.settings.llm.budget.daily_usd_limit == 1.0


def test_what_was_edited_after_a_reload_was_asked_for_is_not_held(file: Path, held: Held) -> None:
    file.write_text(BEFORE.replace("U1", "U2"))
    held.asked()
    file.write_text(BEFORE.replace("U1", "U3"))
    held.taken()

    assert held.settings.roles["responder"].users == ("U2",)


def test_a_reload_that_nobody_took_is_not_held(file: Path, held: Held) -> None:
    file.write_text(BEFORE.replace("U1", "U2"))
    held.asked()

    assert held.settings.roles["responder"].users == ("U1",)


def test_a_file_that_cannot_be_used_changes_nothing_and_is_told(file: Path, held: Held) -> None:
    file.write_text("[roles")
    held.asked()
    held.taken()
    with capture_logs() as lines:
        held.tell()

    assert held.settings.roles["responder"].users == ("U1",)
    assert [line["event"] for line in lines] == ["config.file_not_usable"]


def test_an_unchanged_file_is_no_news(held: Held) -> None:
    with capture_logs() as lines:
        held.tell()

    assert lines == []
