"""The team's pages, Markdown, searched by words: the best section of each page answers.

`FolderPages` reads a folder; `PageSet` is what it searches, and holds recorded pages in memory.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from tools.cluster_offer import WrittenPattern
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.search_words import weight, words_of

MAX_PAGES: Final = 1000
MAX_PAGE_BYTES: Final = 256 * 1024
_HEADING: Final = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$", re.MULTILINE)
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    text: str
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Page:
    file: str
    title: str
    title_words: frozenset[str]
    sections: Sequence[_Section]

    @property
    def words(self) -> frozenset[str]:
        return self.title_words.union(*(one.words for one in self.sections))

    def answer(self, counts: Mapping[str, int]) -> WrittenPattern:
        best = max(self.sections, key=lambda one: weight(counts, one.words, words_of(one.name)))
        return WrittenPattern(self.title, self.file, best.name, best.text)


def read_page(file: str, text: str) -> Page:
    """A page of Markdown: `# Title`, and a section per further heading."""
    body = _FRONT_MATTER.sub("", text.replace("\r\n", "\n"))
    parts = list(_sections(body))
    title = next((name for level, name, _ in parts if level == 1), "") or Path(file).stem
    sections = [
        _Section(
            "" if name == title else name,
            text.strip(),
            frozenset(words_of(f"{name} {text}")),
        )
        for _, name, text in parts
        if text.strip()
    ]
    return Page(file, title, frozenset(words_of(f"{title} {Path(file).stem}")), sections)


def _sections(body: str) -> Iterator[tuple[int, str, str]]:
    code = [match.span() for match in _FENCE.finditer(body)]
    heads = [
        match
        for match in _HEADING.finditer(body)
        if not any(start < match.start() < end for start, end in code)
    ]
    yield 0, "", body[: heads[0].start()] if heads else body
    ends = [*(match.start() for match in heads[1:]), len(body)]
    for match, end in zip(heads, ends, strict=False):
        yield len(match[1]), match[2], body[match.end() : end]


class PageSet:
    """`tools.cluster_offer.Patterns` over pages in memory."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = [(page, page.words) for page in pages if page.sections]

    async def search(self, text: str, limit: int) -> Sequence[WrittenPattern]:
        """The best first. Raises InvalidArguments (no word to search by)."""
        asked = words_of(text)
        if not asked:
            raise InvalidArguments("intent: name words, e.g. 'connection pool postgres'")
        counts = {word: sum(word in words for _, words in self._pages) for word in asked}
        scored = [(weight(counts, words, page.title_words), page) for page, words in self._pages]
        scored.sort(key=lambda pair: (-pair[0], pair[1].file))
        return [page.answer(counts) for score, page in scored[:limit] if score > 0]


class FolderPages:
    """`tools.cluster_offer.Patterns` over the `.md` files of a folder, read again when one changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: Mapping[str, tuple[int, int]] = {}
        self._pages = PageSet(())
        self._reading = asyncio.Lock()

    async def search(self, text: str, limit: int) -> Sequence[WrittenPattern]:
        """Raises InvalidArguments (no word to search by), CapabilityUnavailable (no folder)."""
        async with self._reading:
            try:
                await asyncio.to_thread(self._read_if_changed)
            except OSError as error:
                words = f"the folder of patterns cannot be read: {error.strerror}"
                raise CapabilityUnavailable(words) from error
        return await self._pages.search(text, limit)

    def _read_if_changed(self) -> None:
        root = self._folder.resolve(strict=True)
        files = list(_files(root))
        seen = {
            str(file): (status.st_mtime_ns, status.st_size)
            for file in files
            for status in [file.stat()]
        }
        if seen == self._seen:
            return
        self._pages = PageSet([_page(root, file) for file in files])
        self._seen = seen


def _files(root: Path) -> Iterator[Path]:
    """The pages in order. What a link leads to outside of the folder is not the team's page."""
    found = 0
    for file in sorted(root.rglob("*.md")):
        inside = file.relative_to(root)
        if any(part.startswith(".") for part in inside.parts):
            continue
        if not file.is_file() or not file.resolve().is_relative_to(root):
            continue
        if file.stat().st_size > MAX_PAGE_BYTES or found >= MAX_PAGES:
            _log.warning("patterns.page_skipped", file=str(inside), most_bytes=MAX_PAGE_BYTES)
            continue
        found += 1
        yield file


def _page(root: Path, file: Path) -> Page:
    text = file.read_text(encoding="utf-8", errors="replace")
    return read_page(file.relative_to(root).as_posix(), text)
