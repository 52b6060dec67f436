"""core__read_attachment: a file that the asker attached, as far as it is text."""

import asyncio
from dataclasses import asdict, replace
from typing import Annotated, Final, Protocol

from pydantic import Field

from tools.analysis.file_excerpts import (
    HEAD_CHARS,
    PAGE_CHARS,
    TAIL_CHARS,
    error_lines,
    head_of,
    tail_of,
)
from tools.attached import MAX_FILES, READ_ATTACHMENT, AttachedFile, FileText
from tools.capabilities import CallContext, Capabilities
from tools.contract import COMPUTED, ToolInput, ToolOutput
from tools.core.built_in import counted, read_only
from tools.errors import InvalidArguments
from tools.output import clean_text, lines_of
from tools.port import Port
from tools.products import OF_NO_PRODUCT

SAID_BY: Final = "the file that the asker attached; nothing in it was measured"


class Attachments(Protocol):
    async def read(self, file: AttachedFile, call: CallContext) -> FileText:
        """Its text, with secrets masked.

        Raises InvalidArguments for a file that is not text, too large, deleted or out of reach, and
        UpstreamFailed, CapabilityUnavailable; each says which.
        """
        ...


ATTACHMENTS: Final = Port[Attachments]("attachments")


class AttachmentInput(ToolInput):
    file: Annotated[int, Field(ge=1, le=20, description="its number in the message")] = 1
    from_line: Annotated[
        int | None,
        Field(ge=1, description="Read on from this line; without it: the beginning and the end"),
    ] = None


class FoundError(ToolOutput):
    """One kind of error line: its first line number, and its count."""

    line: int
    count: int
    text: str


class AttachmentOutput(ToolOutput):
    """`text` is the whole, or a page of it; else `head` and `tail`, without the part between them."""

    said_by: str = SAID_BY
    name: str
    kind: str
    total_lines: int
    errors: list[FoundError]
    text: str | None = None
    head: str | None = None
    tail: str | None = None
    next_line: int | None = None
    truncated: bool = False
    note: str | None = None


class ReadAttachment:
    contract = replace(
        read_only(
            READ_ATTACHMENT.removeprefix("core__"),
            "The text of a file that the asker attached to this question: its beginning, its end and"
            " its error lines, or on from a line. It is the asker's word, not a measurement.",
            (AttachmentInput, AttachmentOutput),
            ATTACHMENTS,
            OF_NO_PRODUCT,
            "investigate",
            "recommend",
            "platform",
            timeouts=COMPUTED,
            live=True,
        ),
        of_files=True,
    )

    async def execute(
        self, arguments: AttachmentInput, call: CallContext, caps: Capabilities
    ) -> AttachmentOutput:
        at = arguments.file - 1
        if at >= min(len(call.files), MAX_FILES):
            there = min(len(call.files), MAX_FILES)
            raise InvalidArguments(f"file: this question has {there or 'no'} files to read")
        file = call.files[at]
        read = await caps.of(ATTACHMENTS).read(file, call)
        # A megabyte of lines takes up to half a second: not on the loop.
        return await asyncio.to_thread(_told, file.name, read, arguments.from_line, _share(call))

    def summarise(self, output: AttachmentOutput, arguments: AttachmentInput) -> str:
        del arguments
        errors = f", {counted(len(output.errors), 'kind')} of error" if output.errors else ""
        return f"attached {output.name}: {output.total_lines} lines{errors}"


def _share(call: CallContext) -> int:
    return max(1, sum(not each.is_image for each in call.files[:MAX_FILES]))


def _told(name: str, read: FileText, from_line: int | None, share: int = 1) -> AttachmentOutput:
    text = clean_text(read.text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = lines_of(text)
    found = AttachmentOutput(
        name=name,
        kind=read.kind,
        total_lines=len(lines),
        errors=[FoundError(**asdict(one)) for one in error_lines(lines)],
        note=read.note or None,
    )
    if from_line is not None:
        return _page(found, lines, from_line)
    if len(text) <= (HEAD_CHARS + TAIL_CHARS) // share:
        return found.model_copy(update={"text": text})
    head, tail = head_of(text, HEAD_CHARS // share), tail_of(text, TAIL_CHARS // share)
    left_out = f"{len(text) - len(head) - len(tail)} characters in the middle are left out"
    return found.model_copy(
        update={
            "head": head,
            "tail": tail,
            "next_line": head.count("\n") + 2,
            "truncated": True,
            "note": "; ".join(filter(None, (read.note, left_out))),
        }
    )


def _page(found: AttachmentOutput, lines: list[str], from_line: int) -> AttachmentOutput:
    if from_line > len(lines):
        raise InvalidArguments(f"from_line: the file has {len(lines)} lines")
    taken: list[str] = []
    size, at = 0, from_line - 1
    while at < len(lines) and (not taken or size + len(lines[at]) < PAGE_CHARS):
        taken.append(lines[at][:PAGE_CHARS])
        size += len(taken[-1]) + 1
        at += 1
    more = at < len(lines)
    return found.model_copy(
        update={"text": "\n".join(taken), "next_line": at + 1 if more else None, "truncated": more}
    )
