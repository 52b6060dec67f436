"""`python -m tests.mutants [WORD …]`: break a copy of the source, and run the tests that must fail.

All mutants, or those with one of the words in their name. Exit 1 when one survives.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
SOURCES = ("bot", "adapters", "tools", "migrations", "tests", "docs", "requirements", "deploy")
AT_ONCE = 2
TIMEOUT_S = 300
PASSED, TESTS_FAILED = 0, 1  # https://docs.pytest.org/en/stable/reference/exit-codes.html
_REASON = re.compile(r"^(?:FAILED|ERROR) (.+)$", re.MULTILINE)


def main(words: Sequence[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="kortex-mutants-") as folder:
        whole = Path(folder) / "whole"
        _copy(whole)
        code, output = _tests(whole, sorted({test for m in chosen for test in m.caught_by}))
        if code != PASSED:
            print(f"the tests do not pass on the source as it is:\n{output}")
            return 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            killed = list(pool.map(lambda m: _is_killed(m, whole), chosen))
    print(f"{sum(killed)} of {len(chosen)} killed")
    return 0 if all(killed) else 1


def _is_killed(mutant: Mutant, whole: Path) -> bool:
    copy = Path(tempfile.mkdtemp(dir=whole.parent)) / "source"
    shutil.copytree(whole, copy)
    broken = (copy / mutant.path).read_text().replace(mutant.before, mutant.after)
    ast.parse(broken)
    (copy / mutant.path).write_text(broken)
    began = time.monotonic()
    code, output = _tests(copy, mutant.caught_by)
    shutil.rmtree(copy)
    told = {PASSED: "SURVIVED", TESTS_FAILED: "killed"}.get(code, f"NOT RUN (exit {code})")
    print(f"{told:<9} {time.monotonic() - began:5.1f} s  {mutant.name}  [{mutant.path}]")
    for reason in _REASON.findall(output) if code == TESTS_FAILED else [output]:
        print(f"                   {reason.strip()}", flush=True)
    return code == TESTS_FAILED


def _copy(to: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        shutil.copytree(ROOT / name, to / name, ignore=skipped)
    for each in ROOT.iterdir():
        if each.is_file():
            shutil.copy2(each, to)


def _tests(copy: Path, ids: Sequence[str]) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    found = _run([sys.executable, "-c", "import bot; print(bot.__file__)"], copy, environment)
    assert str(copy) in found[1], f"the copy is not what is imported: {found[1]}"
    options = ["-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line", "-x"]
    return _run([sys.executable, "-m", "pytest", *options, *ids], copy, environment)


def _run(command: Sequence[str], copy: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
