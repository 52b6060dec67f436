"""A library that is loaded at its first use, though its importer asks for it at once.

DBOS imports psycopg for every database, PostgreSQL or not. On SQLite nothing of it is ever used:
8 MB and 70 modules of a bot that runs there.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType


class _Late(ModuleType):
    """Stands in for the library. The first look at anything of it puts the library in its place."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self._names = names

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)  # the import system looks at these and means nothing by it
        for each in self._names:
            if isinstance(sys.modules.get(each), _Late):
                sys.modules.pop(each, None)
        importlib.import_module(self._names[0])
        real = importlib.import_module(self.__name__)
        return getattr(real, name)


def postpone(library: str, *parts: str) -> None:
    """Let it be loaded at its first use; nothing where it is loaded already, or not installed.

    `parts` are its modules that are imported by name, and used later too.
    """
    spec = None if library in sys.modules else importlib.util.find_spec(library)
    if spec is None:
        return
    names = (library, *(f"{library}.{part}" for part in parts))
    late = {name: _Late(name, names) for name in names}
    late[library].__path__ = list(spec.submodule_search_locations or ())
    for part in parts:
        setattr(late[library], part, late[f"{library}.{part}"])
    sys.modules.update(late)
