"""How often each method of Slack's may be called in a workspace, and the order of calls.

There is no clock and no event loop here.

method                     allowance        who goes first              who waits
chat.update                50 a minute      final, first text, stalest  the rest, newest state only
chat.appendStream          100 a minute     the same                    the same
chat.postMessage           300 a minute,    final, first text,          the rest
                           1 s a channel    placeholder
chat.startStream           20 a minute      in turn                     none: the answer is posted
chat.stopStream            20 a minute      in turn                     the end; words go before it
chat.delete                50 a minute      in turn                     the later ones
conversations.replies      50 a minute      in turn                     the later ones
conversations.info         50 a minute      in turn                     none: it fails, ask again
users.info                 100 a minute     who decides                 none: names are left out
agents.sessions.setStatus  as an edit       in turn                     the rest, newest state only

No method waits for another's allowance: the further messages of a long answer are posts, and do not
wait for edits. A 429 holds its own method up, and no other. What a call will show is not known
here: a message is only marked as changed, so the newest state wins.

The most urgent goes first, by any method (`Urgency`), as soon as its method allows it. Only
progress waits for a gap since the last edit or append. From the most urgent down:

final of an answer without a message; card; note: by a post, for people wait for all of it
final of an answer with a message: by an edit, or by a post if that is `sooner_s` sooner
first text of an answer: by an edit or append, or by a post where it has no message yet
more text of an answer, the stalest first: by an edit or append
placeholder: by a post; it says only that there will be something

A final that is posted because an edit would take long replaces a message, which is then deleted. It
waits among the first texts, behind answers without a message. An answer whose placeholder is not
posted within `placeholder_s` continues without it: its first message shows text.
"""

import heapq
import math
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

_ALLOWANCES: Final = (
    ("edit_burst", "edits_per_minute"),
    ("post_burst", "posts_per_s"),
    ("all_posts_burst", "all_posts_per_minute"),
    ("read_burst", "reads_per_minute"),
    ("info_burst", "infos_per_minute"),
    ("person_burst", "persons_per_minute"),
    ("append_burst", "appends_per_minute"),
    ("stream_burst", "streams_per_minute"),
    ("session_burst", "sessions_per_minute"),
    ("delete_burst", "deletes_per_minute"),
)
_RESERVES: Final = ("final_reserve", "first_reserve", "person_reserve")
_MAY_COME_LATE = 2  # calls of a minute that Slack counts in the next one: 3 s of a minute's 50


class Urgency(IntEnum):
    """Why a message wants to be edited."""

    PROGRESS = 0
    FIRST = 1
    FINAL = 2


_MOST_URGENT_FIRST = tuple(reversed(Urgency))


@dataclass(frozen=True, slots=True)
class Rates:
    """How often Slack may be called. Frozen; configuration and benchmarks choose others.

    `chat.update` is Tier 3, 50 calls a minute for all threads of a workspace together
    (https://docs.slack.dev/reference/methods/chat.update). A full burst and a minute of refill are
    10 + 38 = 48 calls in any 60 s, and what may arrive late from 3 s before still makes no more
    than 50. `chat.postMessage` is one a second per channel with short bursts (taken as
    five; three here, so that what arrives 2 s late is not one too many), and "several
    hundred" a minute over all channels, taken as 300: 100 at once and 190 more. Reading a thread is Tier 3
    (https://docs.slack.dev/apis/web-api/rate-limits): 16 and 28 more, so that what arrives 12 s late
    is not one too many.

    `chat.appendStream` is Tier 4, 100 a minute: a burst of 20 and 75 more; `chat.startStream` and
    `chat.stopStream` are Tier 2, 20 a minute each: 8 and 10 more
    (https://docs.slack.dev/reference/methods/chat.startStream and its siblings). So many streams
    are open at once that the last of them ends, when all are done together, 12 s after the first.

    `message_gap_s` is the least time between two edits of one message while it is written; its first
    visible text may follow a status line sooner, and its end any edit: Slack counts the calls of a
    method in a workspace, and asks for no time between two of one message. Progress leaves `final_reserve` calls untouched,
    and a first text `first_reserve`. `chat.delete` is Tier 3 too
    (https://docs.slack.dev/reference/methods/chat.delete). `conversations.info` is Tier 3 as well,
    and what asks it is a turn in a new channel or a press: 30 at once and 18 more. `users.info` is
    Tier 4 (https://docs.slack.dev/reference/methods/users.info): 70 at once and 25 more. Turns ask it
    for the asker's name and time zone, and for the names of all who wrote in a thread, and leave
    `person_reserve` calls to who presses a button.
    """

    edit_burst: int = 10
    edits_per_minute: float = 38.0
    message_gap_s: float = 1.0
    final_reserve: int = 3
    first_reserve: int = 1
    progress_share: float = 0.75
    post_burst: int = 3
    posts_per_s: float = 1.0
    all_posts_burst: int = 100
    all_posts_per_minute: float = 190.0
    read_burst: int = 16
    reads_per_minute: float = 28.0
    info_burst: int = 30
    infos_per_minute: float = 18.0
    person_burst: int = 70
    persons_per_minute: float = 25.0
    person_reserve: int = 20
    append_burst: int = 20
    appends_per_minute: float = 75.0
    stream_burst: int = 8
    streams_per_minute: float = 10.0
    streams_at_once: int = 10
    session_burst: int = 10
    sessions_per_minute: float = 38.0
    delete_burst: int = 10
    deletes_per_minute: float = 38.0
    placeholder_s: float = 1.0
    sooner_s: float = 3.0

    def of_appends(self) -> "Rates":
        """The same, with the allowance of `chat.appendStream` in place of that for edits."""
        return replace(self, edit_burst=self.append_burst, edits_per_minute=self.appends_per_minute)

    def divided(self, processes: int) -> "Rates":
        """One process's part of every allowance; the parts together stay within the whole.

        A burst is at least one call. Where that makes the bursts of all processes more than the
        whole, the refill is smaller, so that any minute still has no more calls. More than
        `streams_at_once` processes open no streams: their answers grow by edits. Every refill stays
        above zero for up to 16 processes, the most that `kortex run --workers` starts.
        """
        parts: dict[str, Any] = {}
        for burst_name, rate_name in _ALLOWANCES:
            burst, rate = getattr(self, burst_name), getattr(self, rate_name)
            window = 60 if rate_name.endswith("_per_s") else 1  # a burst counts for a minute
            excess = max(0, processes - burst) / window
            parts[burst_name] = max(1, burst // processes)
            parts[rate_name] = (rate - excess) / processes
        for name in _RESERVES:
            parts[name] = math.ceil(getattr(self, name) / processes)
        return replace(self, streams_at_once=self.streams_at_once // processes, **parts)

    @classmethod
    def with_edits(cls, per_minute: int) -> "Rates":
        """With so many of `chat.update` in any minute, from 20 on; 0: no method is held back here."""
        if per_minute == 0:
            return cls.unlimited()
        burst = per_minute // 5
        return cls(edit_burst=burst, edits_per_minute=float(per_minute - burst - _MAY_COME_LATE))

    @classmethod
    def unlimited(cls) -> "Rates":
        """For benchmarks, and workspaces with limits of their own; only `message_gap_s` holds."""
        unbound: dict[str, Any] = {"streams_at_once": 1_000_000}
        for burst_name, rate_name in _ALLOWANCES:
            unbound |= {burst_name: 1_000_000, rate_name: math.inf}
        return cls(**unbound)


class Bucket:
    """A token bucket over a clock that is handed in."""

    def __init__(self, burst: int, per_s: float) -> None:
        self._burst = float(burst)
        self._per_s = per_s
        self._level = self._burst
        self._at = -math.inf

    def level(self, now: float) -> float:
        if now > self._at:
            gained = math.inf if math.isinf(self._at) else (now - self._at) * self._per_s
            self._level = min(self._burst, self._level + gained)
            self._at = now
        return self._level

    def take_of(self, tokens: float, now: float) -> bool:
        if self.level(now) < tokens:
            return False
        self._level -= 1
        return True

    def draw(self, now: float) -> float:
        """Use one; seconds until it is there. Below zero is a debt that later callers wait for."""
        self._level = self.level(now) - 1
        return self._until(0.0)

    def give_back(self) -> None:
        """One that was taken was not used."""
        self._level = min(self._burst, self._level + 1)

    def wait_s(self, now: float, tokens: float) -> float:
        """Seconds until there are that many."""
        self.level(now)
        return self._until(tokens)

    def _until(self, level: float) -> float:
        return max(0.0, level - self._level) / self._per_s


@dataclass(slots=True)
class _Slot:
    wants: Urgency | None = None
    edited_at: float = -math.inf
    in_flight: bool = False
    ticket: int = 0  # an entry of a queue counts only while it holds the slot's newest ticket


@dataclass(slots=True)
class EditPlanner:
    """The live messages and what each wants. All times are seconds of one monotonic clock.

    `want` says whether the wish is new. A message that `grant` names is in flight until `finished`;
    `unused` gives back a grant that led to no call. After a 429 nothing is granted before `hold`
    ends. `wait_s` is the time until the next grant, None without a wish, and `expected_s` that of
    one more message.
    """

    rates: Rates
    _bucket: Bucket = field(init=False)
    _slots: dict[int, _Slot] = field(default_factory=dict)
    _queues: dict[Urgency, list[tuple[float, int, int]]] = field(init=False)
    _needed: dict[Urgency, float] = field(init=False)
    _held_until: float = -math.inf
    _tickets: int = 0

    def __post_init__(self) -> None:
        rates = self.rates
        self._bucket = Bucket(rates.edit_burst, rates.edits_per_minute / 60)
        self._queues = {urgency: [] for urgency in Urgency}
        self._needed = {
            Urgency.PROGRESS: self._tokens(rates.final_reserve),
            Urgency.FIRST: self._tokens(rates.first_reserve),
            Urgency.FINAL: self._tokens(0),
        }

    def open(self, key: int, _channel: str = "") -> None:
        self._slots[key] = _Slot()

    def close(self, key: int) -> None:
        self._slots.pop(key, None)

    def want(self, key: int, urgency: Urgency, now: float) -> bool:
        slot = self._slots.get(key)
        if slot is None or (slot.wants is not None and slot.wants >= urgency):
            return False
        slot.wants = urgency
        if not slot.in_flight:
            self._enqueue(key, slot, now)
        return True

    def grant(self, now: float) -> int | None:
        if now < self._held_until:
            return None
        for urgency in _MOST_URGENT_FIRST:
            head = self._head(urgency)
            if head is None or self._ready_at(urgency, head) > now:
                continue
            if self._bucket.take_of(self._needed[urgency], now):
                return self._start(urgency, now)
        return None

    def unused(self, _key: int) -> None:
        self._bucket.give_back()

    def finished(self, key: int, now: float) -> None:
        slot = self._slots.get(key)
        if slot is None:
            return
        slot.in_flight = False
        if slot.wants is not None:
            self._enqueue(key, slot, now)

    def hold(self, until: float, _channel: str = "") -> None:
        """Slack asked to wait: nothing is granted before, anywhere."""
        self._held_until = max(self._held_until, until)

    def wait_s(self, now: float) -> float | None:
        times = [
            max(
                self._ready_at(urgency, head) - now,
                self._bucket.wait_s(now, self._needed[urgency]),
                self._held_until - now,
                0.0,
            )
            for urgency in _MOST_URGENT_FIRST
            if (head := self._head(urgency)) is not None
        ]
        return min(times, default=None)

    def expected_s(self, _channel: str, urgency: Urgency, now: float) -> float:
        before = sum(
            slot.wants is not None and slot.wants >= urgency and not slot.in_flight
            for slot in self._slots.values()
        )
        return max(self._bucket.wait_s(now, 1 + before), self._held_until - now)

    def interval_s(self) -> float:
        """Least time between two progress edits of one message; widens with the live answers.

        Together they then use `progress_share` of the allowance and leave the rest to finals.
        """
        spacing = 60 / (self.rates.edits_per_minute * self.rates.progress_share)
        return max(self.rates.message_gap_s, (len(self._slots) - 1) * spacing)

    def _start(self, urgency: Urgency, now: float) -> int:
        key = heapq.heappop(self._queues[urgency])[2]
        slot = self._slots[key]
        slot.wants, slot.in_flight, slot.edited_at = None, True, now
        return key

    def _enqueue(self, key: int, slot: _Slot, now: float) -> None:
        if slot.wants is None:
            return
        self._tickets += 1
        slot.ticket = self._tickets
        order = slot.edited_at if slot.wants is Urgency.PROGRESS else now
        heapq.heappush(self._queues[slot.wants], (order, slot.ticket, key))

    def _head(self, urgency: Urgency) -> tuple[float, int, int] | None:
        queue = self._queues[urgency]
        while queue:
            slot = self._slots.get(queue[0][2])
            if slot is not None and slot.ticket == queue[0][1] and slot.wants is urgency:
                return queue[0]
            heapq.heappop(queue)
        return None

    def _ready_at(self, urgency: Urgency, head: tuple[float, int, int]) -> float:
        return head[0] + self.interval_s() if urgency is Urgency.PROGRESS else head[0]

    def _tokens(self, reserve: int) -> float:
        """As many as there have to be, so that one more leaves the reserve."""
        return 1 + min(reserve, self.rates.edit_burst - 1)
