"""Code compiled once more for `kortex run`: the same, but for what its readers need."""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest

from bot.upkeep.bytecode import place_of, prefer_lean
from bot.upkeep.compiling import lean_code, write
from tests.sources import ROOT

SOURCE = '''"""Of the module."""

NAME = "first"

class Tool:
    """Of the class."""

    def call(self, number: int) -> int:
        """Of the method."""
        assert number > 0, "a positive number"
        return number

def silent():
    """Nothing else."""

async def later():
    """Of the coroutine."""
    return Tool.call
'''
# What models are told of the tools, and clients of the API.
TOLD = """
import json, sys
from bot.upkeep.bytecode import prefer_lean
prefer_lean(sys.argv[1])
from bot.web.api import models
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.schema import input_schema
tools = [each.contract for each in core_tools(CursorSigner(bytes(32)))]
of_clients = [each for each in vars(models).values() if isinstance(each, type) and issubclass(each, models.Wire)]
print(json.dumps([
    [[each.id, each.description, input_schema(each.input)] for each in tools],
    [each.model_json_schema() for each in of_clients],
    core_tools.__doc__,
]))
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `leanly`, which is compiled in the folder `kept`."""
    folder = tmp_path / "sources"
    folder.mkdir()
    file = folder / "leanly.py"
    file.write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setitem(sys.modules, "leanly", sys)  # put back at the end
    write(str(file), str(tmp_path / "kept"), ours=False)
    return file


def loaded(source: Path) -> ModuleType:
    sys.modules.pop("leanly", None)
    prefer_lean(str(source.parents[1] / "kept"))
    invalidate_caches()
    return import_module("leanly")


def kept(source: Path) -> Path:
    return Path(place_of(str(source), str(source.parents[1] / "kept")))


def test_docstrings_are_left_out_and_nothing_else(source: Path) -> None:
    module = loaded(source)

    told = [module.__doc__, module.Tool.__doc__, module.Tool.call.__doc__, module.silent.__doc__]
    assert told == [None, None, None, None]
    assert [module.NAME, module.Tool().call(2), module.silent()] == ["first", 2, None]
    with pytest.raises(AssertionError, match="a positive number"):
        module.Tool().call(0)


def test_a_failure_still_names_file_line_and_text(source: Path) -> None:
    module = loaded(source)

    with pytest.raises(AssertionError) as failed:
        module.Tool().call(0)

    last = traceback.extract_tb(failed.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (str(source), 10)
    assert last.line == 'assert number > 0, "a positive number"'


def test_classes_of_ours_keep_what_models_are_told() -> None:
    known: dict[str, type] = {}
    exec(lean_code(SOURCE.encode(), "leanly", ours=True), known)  # noqa: S102

    assert known["Tool"].__doc__ == "Of the class."
    assert known["silent"].__doc__ is None


def changed_text(source: Path) -> None:
    source.write_text(SOURCE.replace("first", "another"))


def changed_in_time_alone(source: Path) -> None:
    source.write_text(SOURCE.replace("first", "other"))
    os.utime(source, (1, 1))


def cut_short(source: Path) -> None:
    changed_text(source)
    whole = kept(source).read_bytes()
    write(str(source), str(source.parents[1] / "kept"), ours=False)
    kept(source).write_bytes(kept(source).read_bytes()[: len(whole) // 2])


def emptied(source: Path) -> None:
    kept(source).write_bytes(b"")


def removed(source: Path) -> None:
    kept(source).unlink()


def of_another_interpreter(source: Path) -> None:
    kept(source).write_bytes(b"\0\0\r\n" + kept(source).read_bytes()[4:])


@pytest.mark.parametrize(
    "happen",
    [changed_text, changed_in_time_alone, cut_short, emptied, removed, of_another_interpreter],
)
def test_code_that_is_not_of_the_file_is_not_used(
    source: Path, happen: Callable[[Path], None]
) -> None:
    happen(source)

    module = loaded(source)

    assert module.__doc__ == "Of the module."
    assert f'NAME = "{module.NAME}"' in source.read_text()


def test_without_a_folder_all_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    before = list(sys.path_hooks)

    prefer_lean(str(tmp_path / "none"))

    assert sys.path_hooks == before


def test_code_that_is_there_is_not_written_again(source: Path) -> None:
    before = kept(source).stat().st_ino

    write(str(source), str(source.parents[1] / "kept"), ours=False)
    unchanged = kept(source).stat().st_ino
    changed_text(source)
    write(str(source), str(source.parents[1] / "kept"), ours=False)

    assert unchanged == before
    assert b"another" in kept(source).read_bytes()


def test_models_and_clients_are_told_the_same(tmp_path: Path) -> None:
    sources = [*(ROOT / "tools").rglob("*.py"), *(ROOT / "bot/web").rglob("*.py")]
    for file in sources:
        write(str(file), str(tmp_path / "kept"), ours=True)

    lean, usual = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", TOLD, str(tmp_path / folder)],
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for folder in ("kept", "none")
    )

    assert lean[:2] == usual[:2]
    assert [len(lean[0]) > 20, len(lean[1]) > 10] == [True, True]
    assert [lean[2], bool(usual[2])] == [None, True]  # or both were compiled as ever
