"""Guess from a server's announcement whether a tool reads or writes. Pure.

A guess only narrows: a tool that looks like a write is refused unless the operator explains why it
is not one. A tool that looks like a read still needs the operator's line. A server that says it
writes is believed; one that says it only reads is not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from pydantic import JsonValue


def _verbs(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_READS: Final = _verbs(
    """
    analyse analyze browse calculate check compare compute convert count current describe diff
    discover estimate explain fetch find get grep head history inspect list log lookup ping preview
    query read render retrieve search show stat status suggest summarise summarize tail translate
    validate view what which
    """
)
_WRITES: Final = _verbs(
    """
    abort ack acknowledge activate add allow append apply approve archive assign attach ban block
    cancel change checkout clear close commit configure copy cordon create deactivate delete deny
    deploy destroy detach disable dismiss drain drop edit eject elevate enable escalate evict exec
    execute expire failover flip flush grant import insert install invite invoke kick kill lock
    merge mint modify move mute notify nuke offboard onboard open page patch pause pay perform post
    postpone poweroff promote provision prune publish purge push put reassign reboot rebuild redrive
    refund register reindex release remove rename reopen replace replay requeue reroute reset resize
    restart restore resume retry revert revoke roll rollback rotate run save scale schedule send set
    shutdown silence snooze start stop submit subscribe suspend sync taint terminate
    toggle transfer trigger truncate unassign unban unblock undeploy uninstall unlock unmute
    unsilence unsubscribe update upgrade upload upsert wipe write
    """
)
# "Open tickets of a product": at the beginning of a description these are as often no verbs.
_NOUNS_TOO: Final = _verbs(
    """
    block change checkout close commit deploy edit grant import insert invite lock move open page
    patch pause pay post push refund register release replay roll run scale schedule set shift
    silence start stop sync toggle trigger update upgrade
    """
)
# `createsilence`: a verb and its object in one word. Shorter verbs begin too many other words.
_SHORTEST_GLUED: Final = 5
_ENDINGS: Final = re.compile(r"(?:s|d|r|rs|ed|er|ing|ment|ments|ation|ations|or|al|ity)?")
_GIVES_AWAY: Final = frozenset({"dry_run", "force", "confirm", "overwrite", "skip_confirmation"})


class Guess(StrEnum):
    """What a tool seems to do."""

    READS = "reads"
    WRITES = "writes"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class SeemingEffect:
    """`because` is said to the operator: which words made the guess."""

    guess: Guess
    because: str = ""


def seeming_effect(
    name: str, description: str, schema: Mapping[str, JsonValue], *, says_it_writes: bool
) -> SeemingEffect:
    """The strongest hint wins: the server's own word, the name, the description, the parameters."""
    if says_it_writes:
        return SeemingEffect(Guess.WRITES, "its server says that it changes something")
    if verb := _writing_verb(_words(name)):
        return SeemingEffect(Guess.WRITES, f"its name says {verb!r}")
    opening = _words(description)[:1]
    if opening and _stem(opening[0]) in _WRITES - _NOUNS_TOO:
        return SeemingEffect(Guess.WRITES, f"its description begins with {opening[0]!r}")
    properties = schema.get("properties")
    asked = properties if isinstance(properties, Mapping) else {}
    for parameter in asked:
        if "_".join(_words(parameter)) in _GIVES_AWAY:
            return SeemingEffect(Guess.WRITES, f"it has a parameter {parameter!r}")
    reads = any(word in _READS for word in _words(name))
    return SeemingEffect(Guess.READS if reads else Guess.UNCLEAR)


def _writing_verb(words: Sequence[str]) -> str:
    for before, word in pairwise(words):
        if before in ("or", "and") and word in _WRITES:
            return word
    verb = next((word for word in words if word in _READS or word in _WRITES), "")
    if verb:
        return verb if verb in _WRITES else ""
    return next((glued for word in words if (glued := _glued(word))), "")


def _glued(word: str) -> str:
    """The verb that a word of several begins with, as `createsilence`; "" for `deployments`."""
    verbs = (v for v in _WRITES if len(v) >= _SHORTEST_GLUED and word.startswith(v))
    longest = max(verbs, key=len, default="")
    return longest if longest and not _ENDINGS.fullmatch(word[len(longest) :]) else ""


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]


def _stem(verb: str) -> str:
    for ending, bare in (("ies", "y"), ("shes", "sh"), ("ches", "ch"), ("es", "e"), ("s", "")):
        if verb.endswith(ending) and (stem := verb.removesuffix(ending) + bare) in _WRITES:
            return stem
    return verb
