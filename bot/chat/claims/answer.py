"""A whole answer: each sentence checked against the results it cites, and the marks in its text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from bot.chat.claims.clauses import cut_quotes
from bot.chat.claims.entailment import entailed, is_verbatim
from bot.chat.claims.json_index import Reader
from bot.chat.claims.lookup import (
    Context,
    Finding,
    Wanted,
    has_quote,
    made_up_quotes,
    not_in,
    shown,
)
from bot.chat.claims.mentioned import contrasted, without_contrast, without_zones
from bot.chat.claims.names import names
from bot.chat.claims.numerals import in_digits
from bot.chat.claims.order import holds, order_in
from bot.chat.claims.quantities import figures
from bot.chat.claims.refutation import refutations
from bot.chat.claims.results import Result
from bot.chat.claims.sentences import (
    CAUSAL,
    STATE,
    Sentence,
    admits_failure,
    directions,
    is_open,
    is_suggestion,
    sentences,
)
from bot.chat.claims.states import SAYS, opposed
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


_COMMAND = re.compile(
    r"^\s*(?:\$|#|kubectl|helm|curl|psql|git|docker|kortex|/kortex|make|SELECT)\b|^\s*[$#] ",
    re.IGNORECASE,
)
# What stands before a log line of one word.
_QUOTES_LINE = re.compile(
    r"\b(?:such as|like|says?|logs?|logged|writes?|wrote|lines?|errors?) ?:? ?$"
)
# A log line in code or in quotation marks; one word alone is a name, unless it is a whole line.
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{1,1000})[\"”]|`([^`\n]{1,1000})`")
_MOST_SHOWN = 3
_SENTENCE_CHARS = 3_000


def judged(sentence: Sentence, known: Context) -> Finding | None:
    """The verdict on a sentence; None when it claims nothing that a result could contradict.

    Cited sentences come first, so a repeated sentence keeps its meaning.
    """
    same = (sentence.text, sentence.cites, sentence.inherits, sentence.code)
    if same not in known.told:
        known.told[same] = _judged(sentence, known)
    return known.told[same]


def _judged(sentence: Sentence, known: Context) -> Finding | None:
    missing = [n for n in sentence.cites if n not in known.results]
    if missing:
        absent = " ".join(f"E{n}" for n in missing[:_MOST_SHOWN])
        return _claim(sentence, ClaimState.CONTRADICTED, f"{absent} does not exist")
    if len(sentence.text) > _SENTENCE_CHARS:
        return _claim(sentence, ClaimState.UNCHECKED, "too long to check")
    cited = [known.results[n] for n in sentence.evidence if n in known.results]
    words = _without_quotes(sentence.words, cited)
    if not known.results:
        return _without_tools(sentence, known.question, "no tool was called")
    if not sentence.cites and not known.has_read and not admits_failure(words):
        return _without_tools(sentence, known.question, "nothing could be read")
    failed = [r for r in cited if not r.evidence.ok]
    if failed and sentence.cites and not admits_failure(words):
        return _claim(sentence, ClaimState.UNCHECKED, f"{_marks(failed)} failed")
    good = [r for r in cited if r.evidence.ok]
    against = good or cited or known.good
    wrong = "" if sentence.code else opposed(words, good)
    wrong = wrong or _refutation(sentence, good or (known.good if not cited else ()), known)
    if wrong:
        return _claim(sentence, ClaimState.CONTRADICTED, wrong)
    return _held(sentence, words, against, known, exactly=not cited)


def _claim(
    sentence: Sentence, state: ClaimState, note: str = "", *, is_held: bool = False
) -> Finding:
    return Finding(Claim(sentence.text, sentence.evidence, state, note), is_held)


def _marks(results: Sequence[Result]) -> str:
    return " ".join(f"E{r.number}" for r in results[:_MOST_SHOWN])


def _held(
    sentence: Sentence, words: str, against: Sequence[Result], known: Context, *, exactly: bool
) -> Finding | None:
    if words.rstrip().endswith("?"):
        return None
    words, spoken = in_digits(without_zones(words))
    found, rest = names(words, known.vocabulary)
    denied = contrasted(words)
    found = [name for name in found if name.text.lower() not in denied]
    soft = is_suggestion(words) or (sentence.code and _COMMAND.search(words) is not None)
    counted = [] if soft else list(figures(rest))
    if soft:
        found = [n for n in found if n.kind in ("version", "clock", "onset", "id")]
    lacking = not_in(Wanted(words, found, counted, spoken), against, known, exactly=exactly)
    lacking += [] if soft or exactly else made_up_quotes(sentence.words, against, known)
    if lacking:
        where = "any result" if exactly else _marks(against)
        return _claim(sentence, ClaimState.CONTRADICTED, f"not in {where}: {shown(lacking)}")
    if (found or counted) and not exactly:
        known.repeated.update(name.key for name in found)
        known.repeated.update(figure.key for figure in counted)
    is_held = bool(found or counted) or bool(
        directions(words) and any(r.compared or r.rows for r in against) and not exactly
    )
    claims = is_held or CAUSAL.search(words) or STATE.search(words) or directions(words)
    if not soft and (claims or sentence.cites) and _is_entailed(sentence, against, known):
        return _claim(sentence, ClaimState.SUPPORTED, is_held=True)
    if claims or soft:
        return _claim(sentence, ClaimState.UNCHECKED, is_held=is_held)
    return None


def _is_entailed(sentence: Sentence, against: Sequence[Result], known: Context) -> bool:
    words, quotes = cut_quotes(sentence.words)
    if sentence.code or is_open(words):
        return False
    facts, subjects = known.stated(against)
    if is_verbatim(sentence.words, facts):
        return True
    words, against_whom = without_contrast(in_digits(words)[0], subjects)
    order = order_in(words)
    if order is not None and not holds(order, facts, subjects, quotes):
        return False
    found = known.clauses(words, quotes, against)
    denied = [
        replace(
            one, subjects=[name], figures=[], times=[], ways=[(way, True) for way, _ in one.ways]
        )
        for name in against_whom
        for one in found
    ]
    if not all(one.ways for one in denied):
        return False  # only of ways it is known what the contrast denies
    return bool(found) and all(entailed(one, facts) for one in (*found, *denied))


def _refutation(sentence: Sentence, good: Sequence[Result], known: Context) -> str:
    words, quotes = cut_quotes(sentence.words)
    if sentence.code or is_suggestion(words) or is_open(words):
        return ""
    facts, subjects = known.stated(good)
    words = in_digits(words)[0]
    clauses = known.clauses(words, quotes, good)
    told = next(refutations(words, clauses, facts, subjects, quotes), None)
    return f"E{told[0]}{SAYS}{told[1]}" if told else ""


def _without_quotes(words: str, cited: Sequence[Result]) -> str:
    def kept(match: re.Match[str]) -> str:
        said = match[1] or match[2]
        is_line = " " in said or (
            _QUOTES_LINE.search(words, 0, match.start()) is not None
            and any(said in one.log_lines for one in cited)
        )
        return " " if is_line and any(has_quote(said, one) for one in cited) else match[0]

    return _QUOTED.sub(kept, words)


def _without_tools(sentence: Sentence, question: str, why: str) -> Finding | None:
    words = sentence.words
    if is_open(words) or (sentence.code and _COMMAND.search(words)):
        return None
    found, rest = names(words, frozenset())
    told = [n for n in found if n.kind not in ("code", "place") and n.text.lower() not in question]
    counted = [
        each
        for each in figures(rest)
        if (each.family or "." in each.text) and each.text.lower() not in question
    ]
    soft = is_suggestion(words)
    claims = CAUSAL.search(words) or STATE.search(words) or directions(words) or counted
    if (claims and not soft) or told:
        return _claim(sentence, ClaimState.UNCHECKED, f"not checked: {why}")
    return None
