"""What the rules of the house ask of each source file, read once.

No syntax tree is kept: those of all files are millions of objects, at which the garbage collector
would look again and again.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("bot", "adapters", "tools")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the source: of what name, with how many positional arguments, all of them literal?"""

    name: str
    is_method: bool
    arguments: int
    is_literal: bool


@dataclass(frozen=True, slots=True)
class Source:
    """One file. `functions` are names with their lines, `docstrings` names with their text."""

    path: str
    text: str
    docstring: str | None
    statements: int
    functions: tuple[tuple[str, int], ...]
    docstrings: tuple[tuple[str, str], ...]
    calls: tuple[Call, ...]
    modules: frozenset[str]  # that names are imported from
    catches_anything: bool


@cache
def sources() -> tuple[Source, ...]:
    """All of the product's, in order."""
    paths = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return tuple(_read(path) for path in sorted(paths))


@cache
def migrations() -> tuple[Source, ...]:
    """Those of the database."""
    return tuple(_read(path) for path in sorted((ROOT / "migrations").rglob("*.py")))


def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    functions = [each for each in nodes if isinstance(each, _Function)]
    documented = [each for each in nodes if isinstance(each, _Function | ast.ClassDef)]
    docstrings = [(each.name, ast.get_docstring(each)) for each in documented]
    return Source(
        path.relative_to(ROOT).as_posix(),
        text,
        ast.get_docstring(tree),
        len(tree.body),
        tuple((each.name, (each.end_lineno or 0) - each.lineno) for each in functions),
        tuple((name, said) for name, said in docstrings if said is not None),
        tuple(_call(each) for each in nodes if isinstance(each, ast.Call)),
        frozenset(each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)),
        any(_catches_anything(each) for each in nodes if isinstance(each, ast.ExceptHandler)),
    )


def _call(node: ast.Call) -> Call:
    is_method = isinstance(node.func, ast.Attribute)
    name = getattr(node.func, "attr" if is_method else "id", "")
    is_literal = all(isinstance(each, ast.Constant) for each in node.args)
    return Call(name, is_method, len(node.args), is_literal)


def _catches_anything(handler: ast.ExceptHandler) -> bool:
    """A handler that ends in `raise` hides nothing."""
    anything = handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in ("Exception", "BaseException")
    )
    return anything and not isinstance(handler.body[-1], ast.Raise)


def code_lines(source: str) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    used = {line for token in _tokens(source) for line in range(token.start[0], token.end[0] + 1)}
    return len(used - set(_docstring_lines(source)))


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SKIPPED and token.type != tokenize.ENDMARKER:
            yield token


def _docstring_lines(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
