"""Give every module that Kortex may import its bytecode: a read-only image cannot write it at the start.

Run once while the image is built, with the folder that becomes its root. Importing writes what belongs to
Kortex and its libraries; of Python's own, the image's root has sources only, and gets copies. What nothing
imports stays without: that is a third of all bytecode.
"""

import importlib
import pkgutil
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import adapters
import bot
import tools

# What every start needs; the drivers are chosen by the database's URL, so no module of ours imports them.
NEEDED = (
    "bot.commands.verbs",
    "bot.demo.running",
    "bot.service.lifecycle",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "psycopg",
)
STANDARD_LIBRARY = Path("/usr/lib/python3.13")


def import_all() -> None:
    """Raises ImportError for what is needed and is not there; what only an extra brings may be missing."""
    for name in NEEDED:
        importlib.import_module(name)
    for package in (tools, adapters, bot):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                with suppress(ModuleNotFoundError):
                    importlib.import_module(found.name)


def copy_of_python(root: Path) -> None:
    """Copy the bytecode of what was imported of the standard library into the image's root."""
    for module in list(sys.modules.values()):
        cached = Path(getattr(module, "__cached__", None) or "/")
        if cached.is_relative_to(STANDARD_LIBRARY) and cached.is_file():
            target = root / cached.relative_to("/")
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(cached, target)


if __name__ == "__main__":
    import_all()
    copy_of_python(Path(sys.argv[1]))
