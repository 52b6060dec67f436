"""A message as it was meant: short forms written out, slips of the keyboard put right."""

import difflib
import re
from collections.abc import Collection
from typing import Final
from unicodedata import category

from adapters.llm.triage.meaning import KNOWN_WORDS

_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?")
# A path, an identifier, a quotation or a figure is meant as it is written.
_LITERAL: Final = re.compile(r"""("[^"]*"|'[^']{3,}'|`[^`]*`|\S*[/\d_:@=]\S*|\w+[.-]\w[\w.-]*)""")
_SHORT_FORMS: Final = {
    "r": "are", "u": "you", "ur": "your", "pls": "please", "plz": "please", "rn": "right now",
    "teh": "the", "wat": "what", "wut": "what", "wht": "what", "wich": "which", "whos": "who is",
    "who's": "who is", "whats": "what is", "what's": "what is", "wats": "what is",
    "hows": "how is", "how's": "how is", "where's": "where is",
    "it's": "it is", "that's": "that is", "everything's": "everything is", "im": "i am",
    "i'm": "i am", "dont": "do not", "don't": "do not", "doesnt": "does not",
    "doesn't": "does not", "didnt": "did not", "didn't": "did not", "isnt": "is not",
    "isn't": "is not", "cant": "can not", "can't": "can not", "gonna": "going to",
    "wanna": "want to", "mem": "memory", "ram": "memory", "msgs": "messages", "err": "error",
    "errs": "errors", "reqs": "requests", "conns": "connections", "lat": "latency",
    "prod": "production", "tmrw": "tomorrow", "yest": "yesterday", "oncall": "on call",
    "on-call": "on call", "postmortem": "post mortem", "post-mortem": "post mortem",
    "tldr": "summary", "tl;dr": "summary", "rollback": "roll back", "roll-back": "roll back",
    "rollbacked": "rolled back", "healty": "healthy", "wtf": "what", "wth": "what", "gimme": "give me",
    "lemme": "let me", "abt": "about", "ppl": "people", "svc": "service", "svcs": "services",
    "anyones": "anyone is", "wheres": "where is", "whens": "when is", "sb": "somebody", "y": "why",
    "wasnt": "was not", "wasn't": "was not", "werent": "were not", "couldnt": "could not",
    "shouldnt": "should not", "wont": "will not", "won't": "will not", "tho": "", "dunno": "do not know",
}  # fmt: skip
# What people ask for in a thread, beside the words that any question is made of.
_ASKED_WORDS: Final = """
    affected approved start started begin began ended stopped availability bandwidth broken
    caused cause changed checked confirm confirmed connections consumption culprit current
    currently decided deployed deployments done errors exceptions fixed graph impact impacted
    incident involved latency logs memory mitigate mortem normal over percentile playbook pods
    propose proposed recap recovered rejected released replicas requests resolved response
    restart restarted running runbook saturation severity similar solved stable success suggest
    summarize summary throughput usage utilization version versions warnings
"""
_ASKED_FOR: Final = frozenset(_ASKED_WORDS.split())
_EMOJI: Final = dict.fromkeys("👍🙏✅👌💯🎉👏🙌🤝", "thanks ")
_SIGNS: Final = frozenset({"So", "Sk", "Cf", "Mn"})  # other emoji and their modifiers
_FEWEST_LETTERS: Final = 5
_ALIKE: Final = 0.8


def spelled_out(text: str, names: Collection[str]) -> str:
    """The text in lower case; `names` (products) and literal pieces stay as they are."""
    plain = "".join(_EMOJI.get(each, "" if category(each) in _SIGNS else each) for each in text)
    plain = re.sub(
        r":(?:\+1|thumbsup|pray|tada|clap|white_check_mark|heart)[\w-]*:", "thanks", plain
    )
    flat = " ".join(plain.lower().replace("\u2019", "'").split())
    known = {name.lower() for name in names}
    return "".join(
        piece if number % 2 and piece not in _SHORT_FORMS else _words(piece, known)
        for number, piece in enumerate(_LITERAL.split(flat))
    )


def _words(text: str, names: Collection[str]) -> str:
    if text in _SHORT_FORMS:
        return _SHORT_FORMS[text]
    return _WORD.sub(lambda found: _put_right(found[0], names), text)


def _put_right(word: str, names: Collection[str]) -> str:
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    if word in names or word in _ASKED_FOR or word in KNOWN_WORDS or len(word) < _FEWEST_LETTERS:
        return word
    if any(name.startswith(f"{word}-") for name in names):
        return word
    near = difflib.get_close_matches(word[:40], _ASKED_FOR, 1, _ALIKE)
    return near[0] if near else word
