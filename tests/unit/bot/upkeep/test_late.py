"""A library that is loaded at its first use, as its importers see it."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bot.upkeep.late import leave_out, postpone, postpone_classes

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
    (folder / "errors.py").write_text(
        mark.format(str(log))
        + "class Timeout(Exception):\n    usual = 3\ndef made(): return Timeout()\n"
    )
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


@pytest.fixture
def imported(loaded: Marks) -> dict[str, Any]:
    """What `from lazily.errors import Timeout, made` gives, and a signature that names it."""
    postpone_classes("lazily.errors")
    known: dict[str, Any] = {}
    exec(  # noqa: S102 - as its importers write it
        "from lazily.errors import Timeout, made\n"
        "def wait(error: Timeout | None, of: 'list[int]' = Timeout[int]) -> None: ...",
        known,
    )
    return known


def test_a_class_that_is_only_named_is_not_loaded(imported: dict[str, Any], loaded: Marks) -> None:
    assert not isinstance("something", imported["Timeout"])
    assert loaded() == []


def test_what_a_late_class_makes_is_of_the_real_one(
    imported: dict[str, Any], loaded: Marks
) -> None:
    made = imported["Timeout"]("after 3 s")

    assert str(made) == "after 3 s"
    assert type(made) is import_module("lazily.errors").Timeout
    assert isinstance(made, imported["Timeout"])
    assert issubclass(type(made), imported["Timeout"])
    assert loaded() == ["lazily", "lazily.errors"]


def test_a_late_function_and_a_late_attribute_are_the_real_ones(imported: dict[str, Any]) -> None:
    assert isinstance(imported["made"](), imported["Timeout"])
    assert imported["Timeout"].usual == 3


def test_a_subclass_is_one_of_the_real_class(imported: dict[str, Any]) -> None:
    exec("class Slow(Timeout):\n    usual = 30", imported)  # noqa: S102
    slow = imported["Slow"]("late")

    assert isinstance(slow, import_module("lazily.errors").Timeout)
    assert (slow.usual, str(slow)) == (30, "late")


def test_what_is_left_out_counts_as_not_installed(loaded: Marks) -> None:
    leave_out("lazily")

    with pytest.raises(ImportError):
        import_module("lazily")
