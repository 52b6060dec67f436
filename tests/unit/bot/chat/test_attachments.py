"""Attached files: which are read, and the notices for the model and for people."""

import pytest

from adapters.llm.messages import CompleteRequest, ToolSpec
from bot.chat.attachments import files_note, reading_calls, unread
from bot.domain.turn_events import Evidence
from tools.attached import AttachedFile

OFFERED = CompleteRequest("s", (), (ToolSpec("core__read_attachment", "", {}),))
WITHOUT = CompleteRequest("s", ())
MEGABYTE = 2**20


def file(number: int, size: int = 10, media: str = "text/plain") -> AttachedFile:
    return AttachedFile(f"F{number}", f"part-{number}.log", media, size)


def numbers(*files: AttachedFile) -> list[str]:
    return [call.arguments for call in reading_calls(files, OFFERED)]


def unread_notices(*files: AttachedFile, request: CompleteRequest = OFFERED) -> list[str]:
    return list(unread(files, (), request))


def test_the_first_five_files_are_read_and_the_others_named() -> None:
    files = [file(number) for number in range(1, 8)]

    assert numbers(*files) == [f'{{"file":{number}}}' for number in range(1, 6)]
    assert [each.split(":")[0] for each in unread_notices(*files)] == [
        "I did not read part-6.log", "I did not read part-7.log",
    ]  # fmt: skip


def test_files_over_the_total_size_are_omitted_one_by_one() -> None:
    files = [file(1, MEGABYTE), file(2, MEGABYTE - 10), file(3, 20), file(4, 10)]

    assert numbers(*files) == ['{"file":1}', '{"file":2}', '{"file":4}']
    assert "I did not read part-3.log: I read at most 5 files and 2 MB" in unread_notices(*files)[0]


def test_an_oversized_file_takes_no_room_from_the_others() -> None:
    files = [file(1, 50 * MEGABYTE), file(2, MEGABYTE), file(3, MEGABYTE)]

    assert numbers(*files) == ['{"file":1}', '{"file":2}', '{"file":3}']


def test_an_image_is_not_read_as_text() -> None:
    picture = file(1, media="image/png")

    assert numbers(picture, file(2)) == ['{"file":2}']
    assert unread_notices(picture) == []


def test_without_the_tool_nothing_is_called_and_a_notice_says_so() -> None:
    assert reading_calls([file(1)], WITHOUT) == ()
    assert unread_notices(file(1), request=WITHOUT) == [
        "I did not read part-1.log: this channel has no tool to read files"
    ]


def test_an_unread_file_is_reported_with_its_name_and_reason() -> None:
    failed = Evidence(1, "file-1", "core__read_attachment", "it was deleted", False, 1, False, "{}")

    assert list(unread([file(1)], [failed], OFFERED)) == [
        "I could not read part-1.log: it was deleted"
    ]


@pytest.mark.parametrize("files", [[], [file(1), file(2, media="")]])
def test_the_model_learns_of_attached_files(files: list[AttachedFile]) -> None:
    said = "".join(files_note(files))

    assert [f'"{each.name}"' in said for each in files] == [True] * len(files)
    assert ("was not measured" in said) is bool(files)
