"""The text in a file's bytes, if there is any. Pure."""

from typing import Final

# By how the bytes begin: Unicode's marks first, the longer before the shorter.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig", ""),
    (b"\xff\xfe\x00\x00", "utf-32", "read as UTF-32"),
    (b"\x00\x00\xfe\xff", "utf-32", "read as UTF-32"),
    (b"\xff\xfe", "utf-16", "read as UTF-16"),
    (b"\xfe\xff", "utf-16", "read as UTF-16"),
)
# https://en.wikipedia.org/wiki/List_of_file_signatures, of what people attach under a text's name.
_BINARY: Final = (
    (b"PK\x03\x04", "it is an archive, whatever its name says"),
    (b"\x1f\x8b", "it is a compressed file, whatever its name says"),
    (b"\x28\xb5\x2f\xfd", "it is a compressed file, whatever its name says"),
    (b"%PDF-", "it is a PDF, not text"),
    (b"\x7fELF", "it is a program, not text"),
    (b"\x89PNG", "it is an image"),
    (b"\xff\xd8\xff", "it is an image"),
    (b"GIF8", "it is an image"),
)
_EMPTY: Final = "it is empty"
_KEPT: Final = frozenset("\t\n\r\x0b\x0c\x1b")
_MOST_CONTROLS: Final = 0.01  # of the characters of a text in an old encoding; colour codes aside


class NotText(ValueError):
    """Why it is none, in words for people."""


def text_of(content: bytes) -> tuple[str, str]:
    """The text, and what was odd about it; empty: nothing. Raises NotText."""
    for begins, why in _BINARY:
        if content.startswith(begins):
            raise NotText(why)
    for mark, encoding, note in _MARKS:
        if content.startswith(mark):
            text = _strict(content, encoding)
            if not text.strip("\x00 \t\r\n\ufeff"):
                raise NotText(_EMPTY)
            return text, note
    if not content.strip(b"\x00 \t\r\n"):
        raise NotText(_EMPTY)
    if b"\x00" in content:
        return _unmarked(content)
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if sum(each < " " and each not in _KEPT for each in text) > _MOST_CONTROLS * len(text):
        raise NotText("it is no text, whatever its name says")
    return text, "not UTF-8, so read as Latin-1"


def _strict(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise NotText("it is no text: its bytes do not fit its own mark of encoding") from None


def _unmarked(content: bytes) -> tuple[str, str]:
    """UTF-16 without a mark has a zero in every other place where the text is ASCII; else no text."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = content[first::2].count(0), content[1 - first :: 2].count(0)
        if zeros > len(content) * 0.4 and not others and len(content) % 2 == 0:
            return _strict(content, encoding), "read as UTF-16"
    raise NotText("it is no text, whatever its name says")
