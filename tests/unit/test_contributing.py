"""CONTRIBUTING.md shows the way: every path that it names is there, and no recipe forgets a file."""

import re
import tomllib
from pathlib import Path

import pytest

from adapters.llm.registry import known
from tests.contract.test_endless_answers import PINGS
from tests.fakes.wire_failures import ERRORS
from tests.fixtures_providers import WIRES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:[\w.-]+/)+[\w.<>-]*|[\w-]+\.(?:md|toml|yml))`", TEXT)))
WHERE = TEXT.split("## Where is what")[1].split("\n## ")[0]


@pytest.mark.parametrize("path", [path for path in PATHS if "<" not in path])
def test_every_named_path_exists(path: str) -> None:
    assert path == "kortex.toml" or (ROOT / path).exists()  # the operator's own


@pytest.mark.parametrize("path", [path for path in PATHS if "<" in path])
def test_the_folder_of_a_new_file_exists(path: str) -> None:
    assert (ROOT / path.split("<", maxsplit=1)[0].rpartition("/")[0]).is_dir()


@pytest.mark.parametrize("wanted", ["the card", "the prompt", "how often messages", "a price"])
def test_the_table_contains_a_newcomers_first_targets(wanted: str) -> None:
    assert [line for line in WHERE.splitlines() if line.startswith("| ") and wanted in line]


@pytest.mark.parametrize("name", sorted(known()))
def test_a_provider_is_registered_everywhere_the_recipe_says(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (apart,) = [c for c in contracts if c["name"] == "providers do not know each other"]
    example = (ROOT / "docs" / "kortex.example.toml").read_text(encoding="utf-8")
    prices = tomllib.loads((ROOT / "adapters" / "llm" / "models.toml").read_text(encoding="utf-8"))

    assert f"adapters.llm.{name}" in apart["modules"]
    assert f"[llm.providers.{name}]" in example
    assert (ROOT / "tests" / "golden" / "wire" / name).is_dir()
    assert name in {*WIRES} & {*PINGS} & {*ERRORS}
    named = {row["provider"] for row in prices["model"]}
    assert name in named | {"ollama", "nirmata"}  # whose models are the operator's own
