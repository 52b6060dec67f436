"""The deploys that were seen, as facts about products."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import Case, SeenResult, instant, plain
from tools.core.get_recent_deploys import UNREAD

DEPLOYS: Final = "core__get_recent_deploys"


@dataclass(frozen=True, slots=True)
class DeployFact:
    """One deploy as the tool reported it.

    `previous` is verbatim, and empty unless it is one plain word.
    """

    product: str
    version: str
    previous: str
    at: datetime
    seen: SeenResult


def deploys(case: Case) -> Sequence[DeployFact]:
    facts = [
        DeployFact(
            product=plain(str(row.get("product") or seen.arguments.get("product", ""))),
            version=plain(str(row.get("version", ""))),
            previous=_if_plain(row.get("previous_version")),
            at=at,
            seen=seen,
        )
        for seen in case.all_of(DEPLOYS)
        for row in seen.rows("deploys")
        if (at := instant(str(row.get("ts", "")))) is not None
    ]
    unique: dict[tuple[str, str, datetime], DeployFact] = {}
    for one in facts:  # two calls may read the same deploy
        unique.setdefault((one.product, one.version, one.at), one)
    return sorted(unique.values(), key=lambda d: d.at, reverse=True)


def unread_deploys(seen: SeenResult) -> Sequence[str]:
    """What the tool says of sources that it could not read."""
    return [note for note in seen.texts("notes") if note.startswith(UNREAD)]


def _if_plain(value: JsonValue) -> str:
    return value if isinstance(value, str) and plain(value) == value else ""
