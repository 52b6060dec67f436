"""Compiled code without what only its readers need: some 6 MB less of a running bot.

Docstrings, and the columns in tables of lines, are a tenth of all code. Python has switches for both
(`-OO`, `-X no_debug_ranges`); the first takes assertions too, and a program cannot throw them for itself.
So an installation compiles once more, into a folder of its own (`bot.upkeep.compiling`), and commands
read from there. What is missing there, or older than its source, is Python's own affair, as ever.
"""

import marshal
import os
import sys
from functools import partial
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Final

# Of the interpreter whose code it is; beside its libraries, so that both are removed together.
FOLDER: Final = f"{sys.prefix}/lib/kortex-bytecode/{sys.implementation.cache_tag}"
_HEADER: Final = 4 + 8 + 8


def place_of(source: str, folder: str) -> str:
    """Where the code of a file of Python's is kept; `source` is absolute."""
    return f"{folder}{source}c"


def header_of(source: str) -> bytes:
    """Says of which interpreter code is, and of which state of its file. Raises OSError without one.

    In whole seconds, which images keep.
    """
    status = os.stat(source)  # noqa: PTH116 - `--help` goes without pathlib
    changed = int(status.st_mtime)
    return (
        MAGIC_NUMBER
        + status.st_size.to_bytes(8, "little")
        + changed.to_bytes(8, "little", signed=True)
    )


class Lean(SourceFileLoader):
    """Loads a module's code from there, or as usual."""

    def __init__(self, folder: str, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType | None:
        """As the import system asks for it."""
        return self._kept(self.get_filename(fullname)) or super().get_code(fullname)

    def _kept(self, source: str) -> CodeType | None:
        try:
            kept = self.get_data(place_of(source, self._folder))
            if not kept.startswith(header_of(source)):
                return None
            code: CodeType = marshal.loads(memoryview(kept)[_HEADER:])  # noqa: S302 - trusted as the libraries beside it
        except (OSError, EOFError, ValueError, TypeError):  # none, or not whole
            return None
        return code


def prefer_lean(folder: str = FOLDER) -> None:
    """From now on, in this process. Nothing where an installation has none, or asked for `-O`."""
    if sys.flags.optimize or not os.path.isdir(folder):  # noqa: PTH112 - as above
        return
    hook = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (partial(Lean, folder), SOURCE_SUFFIXES),  # type: ignore[arg-type] # it is called as the class is
    )
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
