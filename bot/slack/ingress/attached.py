"""What a message says of its files, made fit to be kept and said."""

import unicodedata
from collections.abc import Callable
from typing import Final

from bot.slack.ingress.payloads import SharedFile
from tools.attached import AttachedFile
from tools.output import clean_text

MOST_KNOWN: Final = 20  # of a message; Slack takes ten at once
_NAME_CHARS: Final = 60
_ID_CHARS: Final = 40
_MEDIA_CHARS: Final = 80
_UNSAFE: Final = str.maketrans({"`": "'", "<": "‹", ">": "›", "|": "¦", "\\": "/"})

# A name could cite a result, or be a link; the redactor's own brackets stay.
_BRACKETS: Final = str.maketrans("[]", "()")


def attached(shared: SharedFile, redact: Callable[[str], str]) -> AttachedFile:
    """Raises RedactionFailed. A name may hold anything: what it has of marks is shown, not obeyed."""
    folded = unicodedata.normalize("NFC", clean_text(shared.name or ""))
    name = " ".join(redact(folded.translate(_BRACKETS)).translate(_UNSAFE).split())
    return AttachedFile(
        id=clean_text(shared.id)[:_ID_CHARS],
        name=name[:_NAME_CHARS] or "a file",
        media=clean_text(shared.mimetype or "")[:_MEDIA_CHARS],
        size=max(0, shared.size or 0),
    )
