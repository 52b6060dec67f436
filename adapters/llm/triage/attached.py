"""Lines quoted from attached files, attributed to the asker.

A file is never weighed: it measures nothing.
"""

from collections.abc import Iterator
from typing import Final

from adapters.llm.triage.case import Case, SeenResult, number_of, text_of
from adapters.llm.triage.surroundings import quoted

_MOST_KINDS: Final = 5  # of error lines, of one file
_MOST_FILES: Final = 5


def file_lines(case: Case) -> Iterator[str]:
    """A paragraph per readable attached file. Every answer mentions unreadable ones elsewhere."""
    for seen in [one for one in case.files if one.ok][:_MOST_FILES]:
        yield _told(seen)


def _told(seen: SeenResult) -> str:
    name = f"The attached file {quoted(seen.text('name'))}"
    count = int(seen.number("total_lines") or 0)
    lines = f"{count} line{'' if count == 1 else 's'}"
    rows = seen.rows("errors")
    if not rows:
        return f"{name} has {lines}, none of them an error line [{seen.mark}]."
    said = [f"{name} has {lines}, with these errors; I did not measure any of them [{seen.mark}]:"]
    for row in rows[:_MOST_KINDS]:
        line, times = int(number_of(row, "line") or 0), int(number_of(row, "count") or 0)
        often = f", {times} times like it" if times > 1 else ""
        said.append(f'- in the file, line {line}{often}: "{quoted(text_of(row, "text"))}"')
    if len(rows) > _MOST_KINDS:
        said.append("- and other kinds of error in the file")
    return "\n".join(said)
