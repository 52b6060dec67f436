"""The release recipe is true: a version has its dated section, and what the recipe names exists."""

import re
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RECIPE = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)


def test_the_version_has_a_dated_section_below_unreleased() -> None:
    assert SECTIONS[0] == "Unreleased"
    version, day = re.fullmatch(r"(\S+) \((.*)\)", SECTIONS[1]).groups()  # type: ignore[union-attr]
    assert version == PROJECT["version"]
    assert date.fromisoformat(day)


def test_sections_are_newest_first() -> None:
    days = [date.fromisoformat(re.findall(r"\((.*)\)", section)[0]) for section in SECTIONS[1:]]
    assert days == sorted(days, reverse=True)


def test_everything_named_in_the_recipe_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make ([\w-]+)`", RECIPE)
    assert targets
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    assert "-d build/dist-check" in makefile  # where the recipe finds the wheel
    engine = (ROOT / "bot" / "engine").rglob("*.py")
    assert any("WORKFLOW_VERSION" in path.read_text(encoding="utf-8") for path in engine)


def test_the_upgrade_test_starts_from_the_previous_release() -> None:
    named = (ROOT / "tests" / "upgrade" / "release.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^RELEASE = "[0-9a-f]{40}"  # (\S+)$', named, re.MULTILINE)
    assert version == SECTIONS[2].split()[0]
