"""The pages of docs/reference: the generated ones are current, and the glossary's terms are used."""

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.reference import FOLDER, PAGES
from tests.sources import ROOT

# Old entries of the CHANGELOG stay as users read them at their time.
PROSE = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if page.name not in ("CHANGELOG.md", "glossary.md")
]
ROWS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \|(?: ([^|]+))? \|$",
    (FOLDER / "glossary.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)[1:]
SYNONYMS = {word: term for term, _, words in ROWS for word in words.split(", ") if word}


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")

    assert written == PAGES[name](), "run `make reference` and look at the difference"


def test_terms_are_sorted_and_unique() -> None:
    terms = [term for term, _, _ in ROWS]

    assert len(terms) > 40
    assert terms == sorted(set(terms))


def test_a_term_is_not_a_synonym_of_another() -> None:
    assert SYNONYMS.keys() & {term for term, _, _ in ROWS} == set()


def _messages() -> Iterator[tuple[str, str]]:
    """Every string of the product that holds a few words, without docstrings."""
    for top in ("bot", "adapters", "tools"):
        for path in sorted((ROOT / top).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            written = (
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and node not in alone
            )
            for node in written:
                if isinstance(node.value, str) and node.value.count(" ") > 1:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def _pages() -> Iterator[tuple[str, str]]:
    for page in PROSE:
        text = page.read_text(encoding="utf-8")
        yield str(page.relative_to(ROOT)), re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("texts", [_pages, _messages], ids=["pages", "messages"])
def test_no_text_uses_a_forbidden_synonym(
    texts: Callable[[], Iterator[tuple[str, str]]],
) -> None:
    forbidden = re.compile(rf"\b(?:{'|'.join(map(re.escape, SYNONYMS))})s?\b", re.IGNORECASE)
    found = [(place, *forbidden.findall(text)) for place, text in texts()]

    assert [each for each in found if len(each) > 1] == []
