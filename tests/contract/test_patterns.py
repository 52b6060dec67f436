"""The team's pages are searched in the same way, from a folder or recorded; the folder may change."""

from pathlib import Path

import orjson
import pytest

from adapters.recorded.simulator.history import PAGES, recorded_pages
from adapters.written_pages import MAX_PAGE_BYTES, FolderPages, read_page
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.tools import bench
from tools.cluster_offer import Patterns
from tools.core.search_patterns import SearchPatterns
from tools.errors import CapabilityUnavailable, InvalidArguments


def write(folder: Path, file: str, text: str) -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(params=["folder", "recorded"])
def patterns(request: pytest.FixtureRequest, tmp_path: Path) -> Patterns:
    for file, text in PAGES:
        write(tmp_path, file, text)
    return FolderPages(tmp_path) if request.param == "folder" else recorded_pages()


@pytest.mark.parametrize(
    ("text", "file", "section"),
    [
        ("checkout slow after a release", "runbooks/checkout-slow.md", "After a release"),
        ("who holds connections", "runbooks/connection-pool-exhausted.md",
         "Find who holds the connections"),
        ("postgres database", "patterns/postgres.md", ""),
        ("autoscaler' OR \"cpu* --", "patterns/stateless-service.md", ""),
    ],
)  # fmt: skip
async def test_the_best_section_of_the_best_page_is_returned(
    patterns: Patterns, text: str, file: str, section: str
) -> None:
    (found,) = await patterns.search(text, 1)
    assert (found.file, found.section) == (file, section)
    assert not found.text.startswith("#")


async def test_a_topic_without_a_page_finds_nothing(patterns: Patterns) -> None:
    assert list(await patterns.search("blockchain", 5)) == []
    with pytest.raises(InvalidArguments, match="name words"):
        await patterns.search("???", 5)


async def test_a_changed_page_is_read_again(tmp_path: Path) -> None:
    pages = FolderPages(tmp_path)
    assert list(await pages.search("kafka", 5)) == []
    file = write(tmp_path, "kafka.md", "# Kafka lag\n\nScale the consumers.\n")
    (found,) = await pages.search("kafka", 5)
    assert (found.title, found.text) == ("Kafka lag", "Scale the consumers.")
    file.unlink()
    assert list(await pages.search("kafka", 5)) == []


async def test_a_file_that_is_not_a_page_of_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    outside = write(tmp_path, "outside.md", "# Kafka\n\nsecret\n")
    write(folder, ".git/kafka.md", "# Kafka\n\nhidden\n")
    write(folder, "kafka.txt", "kafka")
    write(folder, "large.md", "kafka " * MAX_PAGE_BYTES)
    (folder / "link.md").symlink_to(outside)
    assert list(await FolderPages(folder).search("kafka", 5)) == []


async def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(CapabilityUnavailable, match="cannot be read"):
        await FolderPages(tmp_path / "none").search("kafka", 5)


def test_a_heading_in_code_or_front_matter_does_not_count() -> None:
    text = "---\ntitle: x\n---\n# Deploy\r\n\r\n```sh\n# not a heading\nrun\n```\n## Then\nwait\n"
    page = read_page("a.md", text)
    assert page.title == "Deploy"
    assert [one.name for one in page.sections] == ["", "Then"]


async def test_a_model_is_shown_the_page() -> None:
    b = bench([SearchPatterns()], caps=fake_capabilities(patterns=recorded_pages()))
    outcome = await b.run('{"intent": "pool exhausted", "limit": 1}', "core__search_patterns")
    (page,) = orjson.loads(outcome.content)["patterns"]
    assert (page["title"], page["file"]) == (
        "Connection pool exhausted",
        "runbooks/connection-pool-exhausted.md",
    )
    assert outcome.summary == '1 page on "pool exhausted"'
