"""The cases that are asked, each with its truth taken out of its files: nobody else sees that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.recorded.packs.archive import TRUTH_FILE, CaseFiles, case_files
from adapters.recorded.packs.recording import read_case
from adapters.recorded.packs.shapes import document_of
from bot.commands.eval_score import PossibleTruth, Truth


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case and what is right about it."""

    found: CaseFiles
    truth: Truth


def judged_cases(packs: Sequence[Path], tell: Callable[[str], None]) -> Iterator[JudgedCase]:
    """Cases with a truth that can be counted, each id once. Raises BadPack.

    Those to be graded by reading are left out, and `tell` is given a line about it at the end.
    """
    without = 0
    asked: set[str] = set()
    for found in case_files(packs):
        truth = _truth(found)
        if truth is None:
            without += 1
            continue
        files = {name: content for name, content in found.files.items() if name != TRUTH_FILE}
        case = CaseFiles(found.place, files)
        name = read_case(case).id
        if name in asked:
            tell(f"{found.place}: a case with the id {name} was asked already; left out")
            continue
        asked.add(name)
        yield JudgedCase(case, truth)
    if without:
        tell(f"{without} cases without a truth that can be counted were left out")


def _truth(found: CaseFiles) -> Truth | None:
    content = found.files.get(TRUTH_FILE)
    if content is None:
        return None
    place = f"{found.place}/{TRUTH_FILE}"
    if document_of(content, PossibleTruth, place).healthy is None:
        return None
    return document_of(content, Truth, place)
