"""What a model reads of an attached file: all of a small one; of a large one the ends and the errors."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.capabilities import FakeClock, call_context
from tools.analysis.file_excerpts import HEAD_CHARS, TAIL_CHARS, error_lines, head_of, tail_of
from tools.attached import AttachedFile, FileText
from tools.capabilities import CallContext, Capabilities
from tools.core.read_attachment import (
    ATTACHMENTS,
    AttachmentInput,
    AttachmentOutput,
    ReadAttachment,
)
from tools.errors import InvalidArguments


class OneFile:
    def __init__(self, text: str) -> None:
        self._text = text

    async def read(self, file: AttachedFile, call: CallContext) -> FileText:
        del file, call
        return FileText(self._text, "text/plain", len(self._text))


async def read_file(text: str, from_line: int | None = None) -> AttachmentOutput:
    caps = Capabilities(FakeClock(), more={ATTACHMENTS.name: OneFile(text)})
    call = call_context(files=(AttachedFile("F1", "app.log"),))
    return await ReadAttachment().execute(AttachmentInput(from_line=from_line), call, caps)


async def test_a_small_file_is_returned_completely() -> None:
    found = await read_file("a\r\nb\rc\n")

    assert (found.text, found.total_lines, found.truncated) == ("a\nb\nc\n", 3, False)
    assert "asker" in found.said_by


async def test_a_large_file_returns_its_ends_and_how_to_continue() -> None:
    lines = [f"{number:05} all is well" for number in range(5_000)]
    found = await read_file("\n".join(lines))

    assert found.text is None
    assert found.truncated
    assert found.head is not None
    assert found.tail is not None
    assert found.head.splitlines()[0] == lines[0]
    assert found.tail.splitlines()[-1] == lines[-1]
    assert {*found.head.splitlines(), *found.tail.splitlines()} <= {*lines}
    assert f"{found.next_line:05}" == f"{int(found.head.splitlines()[-1][:5]) + 2:05}"


async def test_the_pages_of_a_large_file_cover_it_completely() -> None:
    lines = [f"{number:05} all is well" for number in range(5_000)]
    read: list[str] = []
    at: int | None = 1
    while at is not None:
        page = await read_file("\n".join(lines), at)
        read += (page.text or "").splitlines()
        at = page.next_line

    assert read == lines


async def test_an_unknown_file_or_line_is_refused() -> None:
    caps = Capabilities(FakeClock(), more={ATTACHMENTS.name: OneFile("a")})
    with pytest.raises(InvalidArguments, match="this question has 1 files"):
        await ReadAttachment().execute(
            AttachmentInput(file=2), call_context(files=(AttachedFile("F1"),)), caps
        )
    with pytest.raises(InvalidArguments, match="this question has no files"):
        await ReadAttachment().execute(AttachmentInput(), call_context(), caps)
    with pytest.raises(InvalidArguments, match="the file has 1 lines"):
        await read_file("a", 2)


async def test_errors_are_grouped_by_kind_with_their_first_line() -> None:
    found = await read_file(
        "10:00:01 INFO 0 errors so far\n"
        "10:00:02 ERROR pool exhausted after 12 ms\n"
        "10:00:03 ERROR pool exhausted after 15 ms\n"
        "java.lang.IllegalStateException: no route\n"
    )

    assert [(e.line, e.count, e.text) for e in found.errors] == [
        (2, 2, "ERROR pool exhausted after 12 ms"),
        (4, 1, "java.lang.IllegalStateException: no route"),
    ]
    assert ReadAttachment().summarise(found, AttachmentInput()) == (
        "attached app.log: 4 lines, 2 kinds of error"
    )


@given(st.text(max_size=400), st.integers(1, 200))
def test_head_and_tail_respect_the_limit_and_the_text(text: str, most: int) -> None:
    head, tail = head_of(text, most), tail_of(text, most)

    assert text.startswith(head)
    assert text.endswith(tail)
    assert max(len(head), len(tail)) <= most


@given(st.text())
def test_any_text_has_a_result_that_is_strict_json(text: str) -> None:
    lines = text.splitlines()

    found = error_lines(lines)

    assert all(1 <= each.line <= len(lines) for each in found)
    assert sum(each.count for each in found) <= len(lines)


async def test_several_files_share_the_size_limit() -> None:
    caps = Capabilities(FakeClock(), more={ATTACHMENTS.name: OneFile("x" * 50_000)})
    files = (*(AttachedFile(f"F{n}") for n in range(4)), AttachedFile("F9", media="image/png"))
    found = await ReadAttachment().execute(AttachmentInput(), call_context(files=files), caps)

    assert (len(found.head or ""), len(found.tail or "")) == (HEAD_CHARS // 4, TAIL_CHARS // 4)


async def test_one_endless_line_is_cut() -> None:
    found = await read_file("x" * 1_000_000)

    assert (len(found.head or ""), len(found.tail or "")) == (HEAD_CHARS, TAIL_CHARS)
    assert len(orjson.dumps(found.model_dump(mode="json"))) < 40_000
