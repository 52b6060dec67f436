"""A redactor that masks `SECRET-…` words, or fails on request."""

import re
from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from tools.redactor import Redacted, RedactionFailed

MASK = "[redacted]"


@dataclass
class FakeRedactor:
    """`fails` makes every call raise; `breaks_json` returns a value that is no object."""

    fails: bool = False
    breaks_json: bool = False

    def redact(self, text: str) -> Redacted:
        if self.fails:
            raise RedactionFailed("told to fail")
        return Redacted(re.sub(r"SECRET-\w+", MASK, text))

    @property
    def learned(self) -> int:
        return 0

    def redact_value(self, value: JsonValue) -> JsonValue:
        masked: JsonValue = orjson.loads(self.redact(orjson.dumps(value).decode()))
        return [masked] if self.breaks_json else masked
