"""Cold start of the command, and what an installation holds."""

import re
import resource
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.benchmarks.child import ROOT
from tests.benchmarks.figures import ratios, show, spread

pytestmark = pytest.mark.benchmark

PAIRS = 7


def _cpu_s(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_against_an_empty_program() -> None:
    """CPU of whole processes, in pairs."""
    _cpu_s("-m", "bot", "--help")
    pairs = [(_cpu_s("-c", "pass"), _cpu_s("-m", "bot", "--help")) for _ in range(PAIRS)]
    empty, ours = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    show(
        "kortex --help (target 200 ms CPU)",
        help_over_empty=spread(ratios(ours, empty), 1),
        help_cpu_ms=spread([each * 1e3 for each in ours], 0),
        empty_cpu_ms=spread([each * 1e3 for each in empty], 0),
    )

    assert min(ours) > 0


def test_what_the_runtime_lock_installs() -> None:
    """Files of the locked distributions as they are installed here, without compiled caches."""
    lock = (ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8")
    locked = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[.*\])?==", lock, re.MULTILINE)
    here = {re.sub(r"[-_.]+", "-", each.name).lower(): each for each in metadata.distributions()}
    installed = [here[name] for name in locked if name in here]
    files = [each for found in installed for each in found.files or [] if each.suffix != ".pyc"]
    paths = [Path(each.locate()) for each in files]
    bytes_ = sum(path.stat().st_size for path in paths if path.is_file())
    show(
        "runtime lock",
        packages_locked=str(len(locked)),
        packages_installed_here=str(len(installed)),
        megabytes=f"{bytes_ / 1e6:.0f}",
    )

    assert installed
