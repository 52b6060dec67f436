"""The time zones that a text names, on every surface that people read."""

import re
from typing import Final

_ZONED: Final = re.compile(
    r"\b[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]+)? ?(Z\b|[A-Z]{3,4}\b|[+-][0-9]{2}:?[0-9]{2}\b)"
)


def zones_in(text: str) -> set[str]:
    # Slack shows `<!date^…>` by the reader's own clock.
    return set(_ZONED.findall(text)) | set(re.findall("<!date", text))
