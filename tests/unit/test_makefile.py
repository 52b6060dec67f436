"""`make setup` and its extras end with what comes next: printed once, for the target that was called."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = ("mcp", "charts", "otel", "oidc", "workspaces")
TIMEOUT_S = 60.0


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that make takes for a finished installation; its pip does nothing."""
    (tmp_path / "bin").mkdir()
    for program in ("python", "kortex"):
        path = tmp_path / "bin" / program
        path.write_text(f'#!/bin/sh\ntest {program} = python || echo {program} "$@"\n')
        path.chmod(0o755)
    (tmp_path / ".runtime").touch()
    return tmp_path


def make(installed: Path, *goals: str) -> list[str]:
    command = ["make", "--no-print-directory", f"VENV={installed}", *goals]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return (ended.stdout + ended.stderr).splitlines()


def test_a_finished_setup_prints_the_next_step(installed: Path) -> None:
    (said,) = make(installed, "setup")

    assert said == (
        f"Ready. Next: . {installed}/bin/activate, then kortex init (README.md, docs/first-hour.md); "
        "make demo needs no configuration."
    )


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_finished_extra_prints_the_next_step_and_its_page(installed: Path, extra: str) -> None:
    (said,) = make(installed, f"setup-{extra}")

    assert said.startswith(f"Ready: kortex[{extra}]. Next: ")
    (page,) = re.findall(r"\((docs/[a-z]+\.md)\)", said)
    assert (ROOT / page).is_file()
    (key,) = re.findall(r"(\[[a-z.]+\]?|files:write)", said.partition("Next: ")[2])[:1]
    assert key.strip("[]") in (ROOT / page).read_text(encoding="utf-8")


def test_two_goals_print_a_line_each(installed: Path) -> None:
    assert len(make(installed, "setup", "setup-mcp")) == 2


def test_a_goal_that_only_depends_on_a_setup_prints_nothing(installed: Path) -> None:
    assert make(installed, "demo") == ["kortex demo"]
