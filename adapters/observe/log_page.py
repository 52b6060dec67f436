"""One page of log lines, newest first, from a backend that has no cursor and orders no ties.

Pages are put in order here, and continued from the last timestamp with hashes of the lines
delivered at it: nothing is kept on the server, so a cursor outlives its restart, and any replica
can continue.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.cursor import Position, advanced
from adapters.observe.log_entry import Entry, Newest, in_order
from tools.errors import InvalidArguments

# At most so many of the newest entries before a position.
Read = Callable[[Position, int], Awaitable[Newest]]
_MOST_READS: Final = 5  # answers that are looked through for lines that a filter keeps


@dataclass(frozen=True, slots=True)
class Page:
    """`behind` is where the next page begins, None on the last. `looked_at` entries were read.

    `unread` entries could not be read.
    """

    entries: Sequence[Entry]
    behind: Position | None
    looked_at: int
    unread: int = 0


async def next_page(
    read: Read, position: Position, size: int, most: int, keep: Callable[[str], bool] | None = None
) -> Page:
    """The next `size` lines. `most` is what one answer holds.

    `keep` judges lines where the backend cannot: a page may then be short, or empty, and have a
    next one. Raises InvalidArguments where more lines share a timestamp than an answer holds.
    """
    found: list[Entry] = []
    at, more, looked_at, unread = position, True, 0, 0
    for _ in range(_MOST_READS if keep else 1):
        whole = await _whole_ties(read, at, size if keep is None else most, most)
        fresh, more = whole.entries, whole.more
        looked_at += len(fresh)
        unread += whole.unread
        found += [entry for entry in fresh if keep is None or keep(entry.line)]
        if len(found) > size or not more:
            break
        at = advanced(at, [(entry.ts_ns, entry.hash()) for entry in fresh], None)
    page = found[:size]
    if len(found) > size or (more and len(found) == size):
        behind = advanced(position, [(entry.ts_ns, entry.hash()) for entry in page], None)
        return Page(page, behind, looked_at, unread)
    return Page(page, at if more else None, looked_at, unread)


async def _whole_ties(read: Read, position: Position, size: int, most: int) -> Newest:
    """At least `size` of the next in order.

    Which lines of a tie an answer holds is not defined when it is full: such a tie is read whole, or
    left for the next page.
    """
    whole: list[Entry] = []
    for limit in dict.fromkeys((min(size + position.count + 1, most), most)):
        newest = await read(position, limit)
        entries = await in_order(newest.entries)
        fresh = _behind(entries, position)
        if not newest.more or not entries:
            return Newest(fresh, unread=newest.unread)
        whole = [entry for entry in fresh if entry.ts_ns != entries[-1].ts_ns]
        if len(whole) >= size:
            break
    if not whole:
        raise InvalidArguments(
            f"{len(entries)} lines or more share the timestamp {entries[-1].ts_ns} ns, as many as "
            "one answer holds; narrow the filter or the level to read past it"
        )
    return Newest(whole, more=True, unread=newest.unread)


def _behind(ordered: Sequence[Entry], position: Position) -> Sequence[Entry]:
    known = frozenset(position.delivered)
    if not position.passed:
        return [e for e in ordered if e.ts_ns != position.last_ns or e.hash() not in known]
    tied = [entry.hash() for entry in ordered if entry.ts_ns == position.last_ns]
    last = position.delivered[-1]
    return ordered[tied.index(last) + 1 if last in tied else position.passed :]
