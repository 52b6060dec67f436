"""A library that is loaded at its first use, as its importers see it."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from bot.upkeep.late import postpone

Marks = Callable[[], list[str]]


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Marks:
    """A library `lazily` with the module `lazily.errors`, and which of both were run."""
    folder = tmp_path / "lazily"
    folder.mkdir()
    mark = "with open({!r}, 'a') as log: log.write(__name__ + '\\n')\n"
    log = tmp_path / "log"
    (folder / "__init__.py").write_text(
        mark.format(str(log)) + "from . import errors\n__version__ = '3'\nconnect = 'connected'\n"
    )
    (folder / "errors.py").write_text(mark.format(str(log)) + "class Timeout(Exception): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazily", "lazily.errors"):
        monkeypatch.setitem(sys.modules, name, sys)  # put back at the end, whatever came of it
        del sys.modules[name]
    return lambda: log.read_text().splitlines() if log.exists() else []


def test_what_is_only_imported_is_not_loaded(loaded: Marks) -> None:
    postpone("lazily", "errors")
    import_module("lazily")
    exec("import lazily\nfrom lazily import errors")  # noqa: S102 - as its importers write it

    assert loaded() == []


@pytest.mark.parametrize(
    ("looked_at", "found"),
    [("lazily.connect", "connected"), ("lazily.__version__", "3")],
)
def test_the_first_look_loads_all_of_it_once(loaded: Marks, looked_at: str, found: str) -> None:
    postpone("lazily", "errors")
    known: dict[str, object] = {}
    exec("import lazily", known)  # noqa: S102

    assert [eval(looked_at, known), eval(looked_at, known)] == [found, found]  # noqa: S307
    assert loaded() == ["lazily", "lazily.errors"]
    assert import_module("lazily").connect == "connected"


def test_a_class_is_one_whichever_way_it_is_reached(loaded: Marks) -> None:
    postpone("lazily", "errors")
    early: dict[str, object] = {}
    exec("import lazily\nfrom lazily import errors", early)  # noqa: S102
    timeout = eval("errors.Timeout", early)  # noqa: S307
    late: dict[str, object] = {}
    exec("import lazily.errors", late)  # noqa: S102

    assert eval("lazily.errors.Timeout", early) is timeout  # noqa: S307
    assert eval("lazily.errors.Timeout", late) is timeout  # noqa: S307
    assert loaded() == ["lazily", "lazily.errors"]


def test_what_is_loaded_already_stays(loaded: Marks) -> None:
    before = import_module("lazily")
    postpone("lazily", "errors")
    assert sys.modules["lazily"] is before


def test_what_is_not_installed_is_missed_by_its_importer(loaded: Marks) -> None:
    postpone("no_such_library")
    with pytest.raises(ModuleNotFoundError):
        import_module("no_such_library")


def test_what_it_has_not_is_no_attribute(loaded: Marks) -> None:
    postpone("lazily", "errors")
    with pytest.raises(AttributeError):
        import_module("lazily").nothing  # noqa: B018
