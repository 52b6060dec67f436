"""How a database's connections seal rows of the audit trail: with which keys, redacted by whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson
from pydantic import JsonValue

from bot.domain.audit_chain import AuditKeys
from bot.ports import StorageUnavailable
from bot.store import json_text
from tools.redactor import RedactionFailed, Redactor

SEALING: Final = "kortex_audit_sealing"  # the engine's execution option that holds it


@dataclass(frozen=True, slots=True)
class Sealing:
    """The keys of the chain, and the redactor every body passes on its way in."""

    keys: AuditKeys = field(default_factory=AuditKeys)
    redactor: Redactor | None = None
    row_key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive once what every row needs."""
        object.__setattr__(self, "row_key", self.keys.for_rows()[self.keys.current])

    def body(self, body: Mapping[str, JsonValue]) -> str:
        """Canonical redacted JSON. Raises StorageUnavailable: what cannot be redacted is not kept."""
        text = json_text.dumps(dict(body))
        if self.redactor is None:
            return text
        try:
            if self.redactor.redact(text) == text:
                return text
            return json_text.dumps(_redacted(orjson.loads(text), self.redactor))
        except RedactionFailed as error:
            raise StorageUnavailable("an audit row could not be redacted") from error

    def line(self, text: str) -> str:
        """One redacted text. Raises StorageUnavailable."""
        try:
            return text if self.redactor is None else self.redactor.redact(text)
        except RedactionFailed as error:
            raise StorageUnavailable("an audit row could not be redacted") from error


WITHOUT_KEY: Final = Sealing()


def _redacted(value: JsonValue, redactor: Redactor) -> JsonValue:
    match value:
        case str():
            return redactor.redact(value)
        case dict():
            return {redactor.redact(k): _redacted(v, redactor) for k, v in value.items()}
        case list():
            return [_redacted(v, redactor) for v in value]
        case _:
            return value
