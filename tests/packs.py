"""Cases of our own making, written as packs are: a folder of files."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)


def write_case(
    folder: Path,
    name: str,
    truth: Mapping[str, object],
    *,
    products: Sequence[str],
    asked: str = "what is wrong?",
    rows: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
    documents: Mapping[str, object] | None = None,
) -> Path:
    """A case called `name` of the set `own`. `rows` and `documents` are its other files by stem."""
    case = folder / name
    case.mkdir(parents=True)
    about = {
        "id": name,
        "set": "own",
        "asked": asked,
        "now": NOW.isoformat(),
        "products": list(products),
    }
    (case / "case.json").write_text(json.dumps(about))
    (case / "truth.json").write_text(json.dumps(truth))
    for stem, lines in (rows or {}).items():
        (case / f"{stem}.ndjson").write_text("\n".join(json.dumps(line) for line in lines))
    for stem, document in (documents or {}).items():
        (case / f"{stem}.json").write_text(json.dumps(document))
    return case


def minutes(before: int) -> list[float]:
    """Seconds since the epoch of the last so many minutes, oldest first, now included."""
    return [(NOW - timedelta(minutes=number)).timestamp() for number in range(before, -1, -1)]
