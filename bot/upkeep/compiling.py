"""Compiles what a bot may import for `bot.upkeep.bytecode`: a step of an installation.

    python -X no_debug_ranges -m bot.upkeep.compiling

Imports all of Kortex, so that it knows which modules those are: of the libraries and of Python itself a
third is never imported. Classes of Kortex keep their docstrings, which models and clients are told.
"""

import ast
import importlib
import marshal
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import Pool
from pathlib import Path
from types import CodeType

import adapters
import bot
import tools
from bot.upkeep.bytecode import FOLDER, header_of, place_of

# The drivers are chosen by the database's URL, so no module of ours imports them.
NEEDED = (
    "alembic.command",
    "bot.commands.verbs",
    "bot.demo.running",
    "bot.service.lifecycle",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
)
OURS = (tools, adapters, bot)


def import_all() -> None:
    """Raises ImportError for what is needed and is not there; what only an extra brings may be missing."""
    for name in NEEDED:
        importlib.import_module(name)
    for package in OURS:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                with suppress(ModuleNotFoundError):
                    importlib.import_module(found.name)


def imported() -> Iterator[tuple[str, bool]]:
    """The file of each module that is loaded, and whether it is one of Kortex."""
    ours = {package.__name__ for package in OURS}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py"):
            yield str(Path(file).absolute()), name.partition(".")[0] in ours


def lean_code(text: bytes, name: str, *, ours: bool) -> CodeType:
    """Compile without docstrings; of `ours` without those of functions and modules alone.

    Without columns where the interpreter was started so.
    """
    tree = ast.parse(text, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and ours:
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return compile(tree, name, "exec", dont_inherit=True)


def _drop_docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> None:
    match node.body:
        case [ast.Expr(ast.Constant(str())) as told, *rest]:
            node.body = rest or [ast.copy_location(ast.Pass(), told)]
        case _:
            pass


def write(file: str, folder: str, *, ours: bool) -> None:
    """Compile one file, unless its code is there. Raises OSError where it cannot be kept."""
    place = Path(place_of(file, folder))
    header = header_of(file)
    with suppress(FileNotFoundError), place.open("rb") as kept:
        if kept.read(len(header)) == header:
            return
    place.parent.mkdir(parents=True, exist_ok=True)
    code = lean_code(Path(file).read_bytes(), file, ours=ours)
    beside = place.with_suffix(f".{os.getpid()}")
    beside.write_bytes(header + marshal.dumps(code))
    beside.replace(place)


def _write(each: tuple[str, bool]) -> None:
    write(each[0], FOLDER, ours=each[1])


def main() -> None:
    """Compile all of it, on every core."""
    import_all()
    with Pool() as pool:
        pool.map(_write, imported(), chunksize=16)


if __name__ == "__main__":
    main()
