"""Files that people attach to a question, as values.

A file is only its sender's word: its content was not measured.
"""

from dataclasses import dataclass
from typing import Final

MAX_BYTES: Final = 2**20  # of one file
MAX_FILES: Final = 5  # of one message
MAX_SUM_BYTES: Final = 2 * 2**20  # of one message
READ_ATTACHMENT: Final = "core__read_attachment"


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """What a message says of a file. `id` is the platform's; `size` 0 and `media` "" are not known.

    `name` is outside text made fit for a sentence where it came in: redacted, one short line, no marks.
    """

    id: str
    name: str = "a file"
    media: str = ""
    size: int = 0

    @property
    def is_image(self) -> bool:
        return self.media.startswith("image/")


@dataclass(frozen=True, slots=True)
class FileText:
    """The redacted text of a file. `note` describes an oddity, or is empty."""

    text: str
    kind: str
    size_bytes: int
    note: str = ""
