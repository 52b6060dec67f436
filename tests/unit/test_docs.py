"""The pages: on the map, with links that lead somewhere, lines that fit, and commands that exist."""

import re
import shlex
import tomllib
from contextlib import suppress
from pathlib import Path

import click
import pytest

from bot.cli.main import kortex

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")])
MAP = ROOT / "docs" / "README.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MAX_LINE = 119


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def _prose(path: Path) -> str:
    return re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


LINKS = [
    pytest.param(page, link, id=f"{_name(page)}: {link}")
    for page in PAGES
    for link in LINK.findall(_prose(page))
    if not link.startswith(("https:", "http:", "mailto:"))
]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_line_is_within_the_length_limit(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    # A row of a table cannot be broken, nor can a line without a space: a path, an address.
    prose = [each for each in lines if not each.startswith("|")]
    long = [each for each in prose if len(each) > MAX_LINE and " " in each.strip(" -")]
    assert long == []


def test_a_decisions_number_is_unique() -> None:
    numbers = [page.name[:4] for page in PAGES if page.parent.name == "adr" and page.name[0] == "0"]
    assert len(numbers) == len(set(numbers)) > 0


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_has_an_existing_target(page: Path, link: str) -> None:
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    assert target.exists()
    headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE) if anchor else []
    assert not anchor or anchor in map(_slug, headings)


def test_every_page_is_on_the_map() -> None:
    linked = {(MAP.parent / link.partition("#")[0]).resolve() for link in LINK.findall(_prose(MAP))}
    pages = {page for page in PAGES if page.parent.name in ("docs", "proof", "reference")}
    examples = set(ROOT.glob("docs/*.example.toml"))
    assert (pages | examples) - linked - {MAP} == set()


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))
    listed = re.findall(r"'([\w./-]+\.md)'", str(site["project"]["nav"]))
    sections = [name for entry in site["project"]["nav"] for name in entry]
    assert sorted(listed) == [_name(page) for page in PAGES if ".github" not in page.parts]
    assert sections == ["Kortex", "Tutorial", "How-to", "Reference", "Explanation"]


def test_the_map_has_the_four_kinds() -> None:
    headings = re.findall(r"^## (.*)$", MAP.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:4] == ["Tutorial", "How-to", "Reference", "Explanation"]


def test_paths_of_tests_are_only_in_the_proof_pages() -> None:
    pages = [page for page in ROOT.glob("docs/*.md") if "| `tests/" in page.read_text("utf-8")]
    assert pages == []


def _commands() -> list[tuple[str, str]]:
    blocks = [
        (page, block)
        for page in PAGES
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    return [
        (_name(page), line.strip())
        for page, block in blocks
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"\s*(\.venv/bin/)?kortex ", line)
    ]


@pytest.mark.parametrize(("page", "line"), _commands())
def test_a_shown_command_exists(page: str, line: str) -> None:
    words = shlex.split(re.split(r" (?:\||>|&&) ", line)[0], comments=True)[1:]
    command: click.Command | None = kortex
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None
    with suppress(click.exceptions.Exit):  # of --help
        command.make_context(command.name, words)
