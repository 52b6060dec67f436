"""What a database's connections do to rows on their way in: redact them, and seal the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import orjson
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.chain import AuditKeys, ChainRow, mac_of, tip_of
from bot.ports.failures import StorageUnavailable
from bot.store.columns import json_text
from tools.redactor import RedactionFailed, Redactor, redacted_json

SEALING: Final = "kortex_audit_sealing"  # the engine's execution option that holds it


@dataclass(frozen=True, slots=True)
class Sealing:
    """The keys of the chain, and the redactor every body passes on its way in."""

    keys: AuditKeys = field(default_factory=AuditKeys)
    redactor: Redactor | None = None
    row_key: bytes = field(init=False, repr=False)
    tip_keys: Mapping[str, bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive once what every row needs."""
        object.__setattr__(self, "row_key", self.keys.for_rows()[self.keys.current])
        object.__setattr__(self, "tip_keys", self.keys.for_tips())

    def sealed(self, row: ChainRow) -> ChainRow:
        mac = mac_of(self.row_key, row)
        return row._replace(mac=mac, tip=tip_of(self.tip_keys[row.key_id], row.seq, mac))

    def is_tip(self, seq: int, mac: str | None, key_id: str | None, tip: str | None) -> bool:
        """Whether a row may be followed: with a key, only the one that was written last may."""
        if not self.keys.keyed:
            return True
        key = self.tip_keys.get(key_id) if key_id else None
        return key is not None and mac is not None and tip == tip_of(key, seq, mac)

    def body(self, body: Mapping[str, JsonValue]) -> str:
        return self.bodies([body])[0]

    def bodies(self, bodies: Sequence[Mapping[str, JsonValue]]) -> Sequence[str]:
        """Canonical JSON of each, redacted together: one search costs little more than the other.

        Raises StorageUnavailable: what cannot be redacted is not kept.
        """
        values: JsonValue = [dict(body) for body in bodies]
        if self.redactor is not None:
            try:
                values = self.redactor.redact_value(values)
            except RedactionFailed as error:
                raise StorageUnavailable("a row could not be redacted") from error
        return [json_text(each) for each in cast("list[JsonValue]", values)]

    def data(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Redacted, also by the names of fields. Raises StorageUnavailable."""
        return cast("dict[str, JsonValue]", orjson.loads(self.body(value)))

    def line(self, text: str) -> str:
        """One redacted text, or JSON with its values redacted. Raises StorageUnavailable."""
        try:
            return text if self.redactor is None else redacted_json(text, self.redactor)
        except RedactionFailed as error:
            raise StorageUnavailable("a row could not be redacted") from error


WITHOUT_KEY: Final = Sealing()


def sealing_of(connection: AsyncConnection) -> Sealing:
    """Of the database that the connection belongs to."""
    options = connection.engine.get_execution_options()
    return cast("Sealing", options.get(SEALING, WITHOUT_KEY))
