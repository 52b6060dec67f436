"""Whether a message can be a question about a system at all. In doubt it is one.

What has a question mark is one in any language: "por que va lento?", "neden yavas?".
"""

import difflib
import re
from collections.abc import Collection
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
# Signs of a question, an alert, an identifier, a figure, a time, a path or code.
_SHAPED: Final = re.compile(r"[?\d_:=/<>@#%{}\[\]`]|[a-z][A-Z]|\w[.-]\w")
_MOST_WORDS: Final = 8
_ALIKE: Final = 0.8
_TYPO: Final = 0.84  # "ghost" is no typo of "host", nor "mailer" of "mail"
_FEWEST_LETTERS: Final = 4
_FEWEST_WORDS: Final = 3
# What questions are made of, and what people on call ask about; typos of these count, too.
_COMMON: Final = """
    a about add after again all alright am an and any anybody anyone anything are around as at back
    bad be because been before behind best better but by can cannot cant cause check come could did
    do does doing done else ever every everyone everything explain fine first fix for found from get
    give go going gone good got had happen happened happening has have health healthy hear help here
    hot how i idea if in incident info into investigate is issue it its just keep kind know last late
    later let like list look looking looks made make man many may maybe me mean might more most much
    my near need new news next no nobody normal not nothing now of off ok on one only open or other
    our out over please plz pls point possible problem question quick quiet ready really reason
    report right root run running say see seem seems seen should show since so some somebody someone
    something soon state stats status still stop stuff sum summarise summarize summary sup sure
    system take tell than that the their them then there these they thing things think this those
    through to today tonight too triage trouble try under until up update us use usual very want was
    way we weird well were what whats when where which who whom whose why will with without work
    working works worse worst would wrong yes yesterday yet you your
    alert alarm api app backend baseline blocked bug bugs cache call calls cert certificate change
    changed client cloud cluster config connection connections container cpu customer customers dead
    degraded delay dependency deploy deploys deployment disk dns down drop due edge email endpoint
    error errors event events fault feature firewall frontend graph gateway health host hosts hpa
    impact ingress instance io job jobs kafka kubernetes latency limit load log logs login mail memory
    mesh message messages metric metrics mongo mysql network node nodes nginx oom outage pager paged
    page pages payment pod pods pool postgres production prod quota queue queues rabbit redis region
    release releases replica request requests restart restarts retry rollback rollout runbook saturated
    saturation search server servers service services shop site slo sla slow spike spikes stack
    staging storage store stuck suspect suspects test timeout timeouts token trace traces traffic user
    users version volume warning warnings web website worker workers zone database databases db
    answer bottleneck broke burning capacity closed crashed crashing evidence expired facts fire flaky
    hanging hung leak lost missing overload overloaded page paging pending plan propose reboot
    recommend recover recovered refused rejected retries scale scaling shorter stopped summaries
    suspended throttled tl tldr unhealthy unstable
    wait lets min mins sec secs story chart charts plot draw diagram related relate normally
    minute minutes hour hours day days week night morning evening noon midnight
"""
KNOWN_WORDS: Final = frozenset(_COMMON.split())


def is_understood(text: str) -> bool:
    """Whether any word, or the shape of it, could ask about a system."""
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(text)]
    if text.strip() and not words and "?" not in text and not any(map(str.isdigit, text)):
        return False  # an emoji
    if not words or len(words) > _MOST_WORDS or not text.isascii() or _SHAPED.search(text):
        return True
    return any(map(_is_known, words))


def is_foreign(text: str, names: Collection[str] = ()) -> bool:
    """Whether a message of several words is hardly made of English ones and of names."""
    words = [word.lower() for word in _WORD.findall(text)]
    known = sum(word in KNOWN_WORDS or word in names or len(word) == 1 for word in words)
    return len(words) >= _FEWEST_WORDS and known < len(words) / 3


def is_known_word(text: str) -> bool:
    """Whether it is a common word, or one with a typo behind its first letter."""
    alike = [word for word in KNOWN_WORDS if word[:1] == text[:1]]
    return _stem(text) in KNOWN_WORDS or bool(difflib.get_close_matches(text, alike, 1, _TYPO))


def _is_known(word: str) -> bool:
    plain = word.partition("'")[0]
    if plain in KNOWN_WORDS or len(plain) < _FEWEST_LETTERS:
        return plain in KNOWN_WORDS
    return _stem(plain) in KNOWN_WORDS or bool(
        difflib.get_close_matches(plain[:40], KNOWN_WORDS, 1, _ALIKE)
    )


def _stem(word: str) -> str:
    return word.removesuffix("s").removesuffix("ing").removesuffix("ed")
