"""A redactor that masks `SECRET-…` words, or fails when told to."""

import re
from dataclasses import dataclass

from tools.redactor import RedactionFailed

MASK = "[redacted]"


@dataclass
class FakeRedactor:
    """`fails` makes every call raise; `breaks_json` returns text that is not JSON."""

    fails: bool = False
    breaks_json: bool = False

    def redact(self, text: str) -> str:
        if self.fails:
            raise RedactionFailed("told to fail")
        masked = re.sub(r"SECRET-\w+", MASK, text)
        return f"{masked}<" if self.breaks_json else masked
