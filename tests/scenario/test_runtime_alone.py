"""Commands in an installation as people have it, which has no package that only tests need."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures_database import empty_url
from tests.sources import ROOT
from tests.zones import zones_in

__all__ = ["empty_url"]

# Packages count as not installed, unless the runtime's lock or Python itself has them.
ALONE = """
import sys
from importlib.metadata import packages_distributions
from bot.cli.main import main
locked = set(sys.argv.pop(1).split())
for package, owners in packages_distributions().items():
    names = {owner.lower().replace("_", "-").replace(".", "-") for owner in owners}
    if not names & locked and package not in sys.stdlib_module_names:
        sys.modules[package] = None
main(sys.argv[1:])
"""
LOCK = (ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8")
LOCKED = {"kortex", *re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==", LOCK, re.MULTILINE)}


def output_of(*arguments: str) -> str:
    """What `kortex ...` writes. Raises CalledProcessError where it fails."""
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, " ".join(LOCKED), *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.stdout


pytestmark = pytest.mark.may_block_the_loop


async def test_an_empty_database_is_migrated_twice(empty_url: str, tmp_path: Path) -> None:
    config = tmp_path / "kortex.toml"
    config.write_text(f'[database]\nurl = "{empty_url}"\n', encoding="utf-8")

    first, second = (output_of("migrate", "--config", str(config)) for _ in range(2))

    assert "the schema is at" in first
    assert second == first


def test_a_question_is_answered() -> None:
    answer = output_of("demo", "--ask", "why is checkout slow?")

    assert "[E1]" in answer
    assert zones_in(answer) == {"UTC"}
