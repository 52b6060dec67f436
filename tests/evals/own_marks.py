"""The marks that the check of statements puts on answers of the built-in triage itself.

`python -m tests.evals.own_marks PACK...` prints them for each case of those packs.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from adapters.recorded.packs.archive import TRUTH_FILE, CaseFiles
from adapters.recorded.packs.recording import read_recording
from bot.app.stores import open_redactor
from bot.cli.ask import answer_here
from bot.cli.eval.cases import database_url, world_of
from bot.cli.eval.command import judged_cases
from bot.settings.model import Settings
from bot.store import schema
from bot.telemetry import logs

CHANNEL = "incident-eval"


async def marked_sentences(cases: Iterable[CaseFiles], folder: Path) -> AsyncIterator[list[str]]:
    """For each case `id: note: sentence` of every sentence of its answer that bears a mark."""
    database = folder / "marks.db"
    await schema.migrate(database_url(database))
    for found in cases:
        shown = {name: body for name, body in found.files.items() if name != TRUTH_FILE}
        recording = read_recording(CaseFiles(found.place, shown))
        case = recording.case
        settings = Settings.model_validate(
            {
                "llm": {"default_provider": "triage"},
                "database": {"url": database_url(database)},
                "channels": [{"match": "*", "products": list(case.products)}],
            }
        )
        logs.configure(open_redactor(settings), level="ERROR")
        answer = await answer_here(
            settings, case.asked, CHANNEL, lambda _: None, world_of(recording)
        )
        claims = answer["claims"]
        assert isinstance(claims, list)
        yield [
            f"{case.id}: {claim['note']}: {claim['text']}"
            for claim in claims
            if isinstance(claim, dict) and claim["note"]
        ]


async def _print(packs: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = judged_cases(packs, lambda _: None)
        asked = 0
        async for marked in marked_sentences(cases, Path(folder)):
            asked += 1
            sys.stdout.write("".join(f"{line}\n" for line in marked))
        sys.stdout.write(f"{asked} cases\n")


if __name__ == "__main__":
    asyncio.run(_print([Path(one) for one in sys.argv[1:]]))
