"""A whole answer: its claims, and its text with the marks where they belong."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from bot.chat.claims.json_index import Reader
from bot.chat.claims.lookup import Context, Finding
from bot.chat.claims.results import Result
from bot.chat.claims.sentences import Sentence, sentences
from bot.chat.claims.states import SAYS
from bot.chat.claims.verdict import judged
from bot.domain.claims import FROM_ATTACHMENT, Claim, ClaimState
from bot.domain.turn_events import Evidence
from tools.attached import READ_ATTACHMENT

# An answer for people is a tenth of this; the rest is marked as unchecked.
MOST_CHARS = 24_000
MOST_SENTENCES = 500
# Of the file itself: a disk is attached too, a version uploaded, and there are file systems.
_A_FILE = r"(?:files?|logs?|texts?|csv|json|snippets?|dumps?|outputs?|traces?|[\w.-]*\.[a-z]{2,5})"
_SAYS_SO = re.compile(
    rf"\b(?:attached|uploaded) (?:\w+ )?[`*\"]*{_A_FILE}(?=[`*\"]*(?:[\s,:;.()]|$))(?! (?:system|desc|handle))"
    r"|\b(?:in|from|of|by) (?:the|your|this) attachment\b(?![-_/])"
    r"|\b(?:in|from|of|by) (?:the|your|this|that) (?:log |text )?file(?=[,:;.)]| (?:it|there)\b|$)",
    re.IGNORECASE,
)
_REST = "\n\n⚠ From here on nothing was checked: the answer is too long.\n\n"


def checked(
    text: str,
    evidence: Sequence[Evidence],
    arguments: Mapping[str, Mapping[str, JsonValue]],
    question: str,
    own_words: str = "",
) -> tuple[str, tuple[Claim, ...]]:
    """The marked text and its claims. `arguments` are those of the calls, by call id.

    `own_words` are whole paragraphs of the text that Kortex itself says: no claims.
    """
    head, tail = _split(text)
    reader = Reader()
    results = {e.number: Result(e, arguments.get(e.tool_call_id, {}), reader) for e in evidence}
    known = Context(results, question.lower(), _vocabulary(results))
    said = [each for each in sentences(head) if not _is_ours(each, head, own_words)]
    if len(said) > MOST_SENTENCES:
        at = said[MOST_SENTENCES].start
        head, tail = head[:at], head[at:] + tail
        said = said[:MOST_SENTENCES]
    measured = {n: r for n, r in results.items() if r.evidence.tool != READ_ATTACHMENT}
    apart = None
    if len(measured) < len(results):
        apart = Context(measured, question.lower(), _vocabulary(measured))
    found: dict[int, Claim] = {}
    # Cited sentences first: a statement that they prove may be repeated without a citation.
    for at, one in sorted(enumerate(said), key=lambda each: not each[1].evidence):
        finding = judged(one, known)
        if finding is not None:
            found[at] = finding.claim if apart is None else _as_told(one, finding, apart)
    marked = _marked(head, [(said[at], found[at]) for at in sorted(found)])
    claims = tuple(found[at] for at in sorted(found))
    return (marked + _REST + tail if tail.strip() else marked + tail), claims


def _is_ours(sentence: Sentence, text: str, own_words: str) -> bool:
    at = text.find(own_words) if own_words else -1
    return at >= 0 and at <= sentence.start < at + len(own_words)


def _as_told(one: Sentence, finding: Finding, apart: Context) -> Claim:
    claim = finding.claim
    cites = tuple(n for n in one.cites if n in apart.results)
    inherits = tuple(n for n in one.inherits if n in apart.results)
    rests = bool(cites or inherits) or not one.evidence
    alone = judged(replace(one, cites=cites, inherits=inherits), apart) if rests else None
    if claim.is_doubted or (rests and (not finding.is_held or (alone and alone.is_held))):
        return claim
    note = "" if _SAYS_SO.search(one.text) else FROM_ATTACHMENT
    return replace(claim, state=ClaimState.UNCHECKED, note=note)


def _split(text: str) -> tuple[str, str]:
    if len(text) <= MOST_CHARS:
        return text, ""
    at = text.rfind("\n", 0, MOST_CHARS) + 1 or MOST_CHARS
    return text[:at], text[at:]


def _vocabulary(results: Mapping[int, Result]) -> frozenset[str]:
    """The names that any result has: one in the wrong place is known by them."""
    return frozenset(name for r in results.values() if r.evidence.ok for name in r.index.names)


def _marked(text: str, claims: Sequence[tuple[Sentence, Claim]]) -> str:
    pieces: list[str] = []
    at = 0
    held: list[tuple[int, str]] = []
    for sentence, claim in claims:
        if not claim.note:
            continue
        struck = SAYS in claim.note and _can_be_struck(sentence)
        told = f"⚠ {claim.note}" if claim.is_doubted else claim.note
        mark = f" ({told})"
        if sentence.code:
            held.append((sentence.mark_at, f"\n{told}"))
            continue
        while held and held[0][0] <= sentence.start:
            pieces += [text[at : held[0][0]], held[0][1]]
            at = held.pop(0)[0]
        body = text[sentence.start : sentence.mark_at]
        pieces += [text[at : sentence.start], f"~~{body}~~" if struck else body, mark]
        at = sentence.mark_at
    for place, mark in held:
        pieces += [text[at:place], mark]
        at = place
    return "".join([*pieces, text[at:]])


def _can_be_struck(sentence: Sentence) -> bool:
    body = sentence.text
    return "|" not in body and "~~" not in body and body.count("**") % 2 == 0 and "\n" not in body
