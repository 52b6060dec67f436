"""An answer as sentences: the results each cites or inherits, and which way it says that things went.

Blocks are paragraphs, bullets, table rows and fences; a sentence never crosses one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.chat.claims.lexicon import plain
from bot.domain.claims import CITATION, SENTENCE_END, cited

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BULLET = re.compile(r"^([ \t]{0,20})(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+")
_FENCE = re.compile(r"^[ \t]{0,20}(```|~~~)")
_QUOTE = re.compile(r"^[ \t]{0,3}>[ \t]?")
_CODE_SPAN = re.compile(r"`[^`\n]+`")

_UP = (
    r"rose|risen|rises|rising|increas(?:e|es|ed|ing)|climb(?:s|ed|ing)?|grew|grown|grows|jump(?:s|ed)|spik(?:e|es|ed|ing)|"
    r"surg(?:e|es|ed)|elevated|higher|worse(?:ned|ns)?|doubled|tripled|slower|shot up|went up|gone up|"
    r"(?:is|are|was|were) up(?! to date| and running)|up (?:from|by|since)|"
    r"above (?:its|the|their) (?:\d+ ?h )?(?:baseline|usual|normal)|above (?:normal|usual|baseline)|more [a-z]+ than (?:usual|normal)"
)
_DOWN = (
    r"fell|fallen|falls|falling|drop(?:s|ped|ping)?|decreas(?:e|es|ed|ing)|declin(?:e|es|ed|ing)|lower|shrank|dipp?(?:s|ed)|"
    r"halved|faster|improved|down (?:from|by|to|since)|went down|gone down|"
    r"below (?:its|the|their) (?:\d+ ?h )?(?:baseline|usual|normal)|below (?:normal|usual|baseline)|"
    r"(?:fewer|less) [a-z]+ than (?:usual|normal)"
)
_FLAT = (
    r"within (?:its|the|their)?\s?(?:\d+ ?h )?(?:baseline|normal|usual)|within baseline|"
    r"(?<!back to )(?<!than )(?<!below )(?<!above )(?<!the )(?<!its )(?<!times )normal|stable|steady|unchanged|"
    r"(?:is|are|stayed|remained|was|were|stays) flat|as usual|no change|no anomal(?:y|ies)|nothing (?:abnormal|unusual|anomalous)|healthy|unaffected|did not (?:move|change)|"
    r"(?:is|are|was|were|looks?) fine"
)
_ODD = r"abnormal|anomalous|slow|degraded|unhealthy|left (?:its|the) baseline|out of (?:its|the) baseline"
_NOT = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bno|\bneither|\bnor|\bwithout|\bhardly)(?: [\w-]+){0,2}\s*$",
    re.IGNORECASE,
)
OTHER_DROP = re.compile(
    r"(?:connections?|packets?|requests|messages?|tables?|frames?) (?:was |were |are )?dropp|dropp?\w* (?:connections?|packets?|requests|messages?|tables?)|slow (?:requests?|quer|calls?|start)"
    r"|(?:lower|higher|faster|slower) (?:priority|level|bound|path)",
    re.IGNORECASE,
)
_SIZE = r"(\d{1,3}(?:,\d{3}){1,4}|\d{1,9}(?:\.\d{1,9})?)"
_FROM_TO = re.compile(rf"\bfrom {_SIZE} ?([a-zA-Zµ%]{{0,3}}) to {_SIZE} ?([a-zA-Zµ%]{{0,3}})(?!\w)")
_TO_USUALLY = re.compile(
    r"\bto (\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3})[,;]? ?\(?(?:usually|normally|from|baseline|against|compared (?:to|with)|vs\.?) (?:a baseline of |an? usual )?"
    r"(\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3})(?!\w)"
)
CAUSAL = re.compile(
    r"\b(?:because|caus(?:e|es|ed|ing)|due to|root cause|led to|leads to|trigger(?:s|ed)|as a result of|result(?:s|ed) (?:of|from|in)|"
    r"responsible for|culprit|to blame|blamed?|thanks to|comes from|stems from|brought down|broke)\b",
    re.IGNORECASE,
)
STATE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|went|keeps?|stays?) (?:been |currently |now |all |mostly |clearly )?(?:down|up|failing|failed|crashing|slow|slower|saturated|healthy|"
    r"fine|normal|degraded|broken|overloaded|stuck|out of memory|unavailable|back|full|rolled back|deployed|recovered|stable)\b"
    r"|\b(?:crashed|restarted|timed out|times out|OOMKilled|CrashLoopBackOff|out of memory|recovered|exhausted|ran out of|out of disk)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?\s*$|\b(?:if|whether|could|may|might|would|can|cannot|can['’]t|couldn['’]t|unknown|unclear|not established|not known|"
    r"perhaps|possibly|tell me|ask me|ask for|please|did not look|have not looked|you said|you say|you mention|you wrote|"
    r"usually means|is the (?:latency|time|share|number) that|often|typically|in general|generally|let me|i will|i['’]ll|want me|do you|shall i|no results?)\b",
    re.IGNORECASE,
)
_SUGGESTED = re.compile(
    r"^\W*(?:next\b|consider|try|check|look|run|roll(?:ing)? back|scale|raise|set|use|ask|watch|confirm|verify|restart|increase|reduce|lower|"
    r"i (?:suggest|recommend|propose|would)|you (?:could|can|should|may)|to (?:fix|confirm|verify|mitigate|stop|see)|recommend|suggest|open|see)\b"
    r"|\b(?:should|recommend|i suggest|i propose|is proposed)\b",
    re.IGNORECASE,
)
_SUGGESTING = ("should", "recommend", "suggest", "propos")  # behind its beginning
_ADMITS = re.compile(
    r"\b(?:fail(?:s|ed|ure)?|could not|couldn['’]t|cannot|can['’]t|unable|no (?:data|figures|answer|result|response|metrics|logs|traces)|"
    r"unavailable|timed out|time[- ]?out|denied|refused|error(?:ed)?|did not answer|not reachable|unreachable|without data|not available|"
    r"missing|unknown|not established|does not exist|rejected|nothing came)\b",
    re.IGNORECASE,
)


DIRECTION = re.compile(
    rf"(?<![\w-])(?:(?P<up>{_UP})|(?P<down>{_DOWN})|(?P<flat>{_FLAT})|(?P<odd>{_ODD}))(?![\w-])",
    re.IGNORECASE,
)


# Beside a word; not within a code span, nor where a name is cut short: `job_*`, `job_…`.
_EMPHASIS = re.compile(
    r"(?P<code>`[^`\n]{0,400}`)|(?<![\w`])_{1,3}(?=[^\s_`])|(?<=[^\s_`])_{1,3}(?![\w`*{<…]|\.\.)"
)


def _kept(found: re.Match[str]) -> str:
    return found["code"] or ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`start` and `end` are offsets in the answer, without white space around.

    `cites` are its own citations; `inherits` the nearest of its block, empty if it has its own or
    there are none. `mark_at` is the position for a mark.
    """

    text: str
    start: int
    end: int
    mark_at: int
    cites: tuple[int, ...]
    inherits: tuple[int, ...] = ()
    code: bool = False

    @property
    def evidence(self) -> tuple[int, ...]:
        """The results it is checked against; empty: it names none."""
        return self.cites or self.inherits

    @property
    def words(self) -> str:
        """Its text without citations, and without the underscores that emphasise: they are no letters."""
        told = CITATION.sub(" ", self.text)
        return told if self.code or "_" not in told else _EMPHASIS.sub(_kept, told)


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    indent: int = -1
    code: bool = False
    table: bool = False


def sentences(text: str) -> list[Sentence]:
    found: list[Sentence] = []
    parents: list[tuple[int, tuple[int, ...]]] = []
    last: tuple[int, ...] = ()
    for block in _blocks(text):
        own = list(_cut(text, block))
        while parents and parents[-1][0] >= block.indent:
            parents.pop()
        above = parents[-1][1] if parents and block.indent > 0 else ()
        found.extend(_inheriting(own, last if block.code else above))
        last = cited(text[block.start : block.end]) or (last if block.code else ())
        if block.indent >= 0:
            parents.append((block.indent, last or above))
    return found


def _blocks(text: str) -> Iterator[_Block]:
    open_block: _Block | None = None
    fence = ""
    for match in _LINE.finditer(text):
        line, start, end = match.group(), match.start(), match.end()
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark is not None and mark[1] == fence else fence
            if fence and line.strip():
                yield _Block(start, end, code=True)
            continue
        begins, indent, offset, alone = _line_kind(line)
        if open_block is not None and not (begins or mark or not line.strip()):
            open_block.end = end
            continue
        yield from filter(None, [open_block])
        open_block = None
        if mark is not None:
            fence = mark[1]
        elif line.strip():
            open_block = _Block(start + offset, end, indent, table=line.lstrip().startswith("|"))
            if alone:
                yield open_block
                open_block = None
    yield from filter(None, [open_block])


def _line_kind(line: str) -> tuple[bool, int, int, bool]:
    """Whether it begins a block, its bullet's indent (-1: none), its words' offset, if it is alone."""
    if bullet := _BULLET.match(line):
        return True, len(bullet[1].expandtabs(4)), bullet.end(), False
    if heading := _HEADING.match(line):
        return True, -1, heading.end(), True
    if line.lstrip().startswith("|"):
        return True, -1, 0, True
    quote = _QUOTE.match(line)
    return False, -1, quote.end() if quote else 0, False


def _cut(text: str, block: _Block) -> Iterator[Sentence]:
    body = text[block.start : block.end]
    masked = _CODE_SPAN.sub(lambda span: "`" * len(span[0]), body)  # a log line ends no sentence
    cuts = [] if block.code or block.table else [m.end() for m in SENTENCE_END.finditer(masked)]
    at = 0
    for cut in [*cuts, len(body)]:
        piece = body[at:cut]
        said = piece.strip()
        start = block.start + at + len(piece) - len(piece.lstrip())
        at = cut
        if not said:
            continue
        end = start + len(said)
        mark_at = end - 1 if block.table and said.endswith("|") and len(said) > 1 else end
        if block.code:
            mark_at = _fence_end(text, end)
        yield Sentence(said, start, end, mark_at, cited(said), code=block.code)


def _fence_end(text: str, at: int) -> int:
    ends = [found for mark in ("\n```", "\n~~~") if (found := text.find(mark, at)) >= 0]
    if not ends:
        return len(text)
    newline = text.find("\n", min(ends) + 1)
    return newline if newline >= 0 else len(text)


def _inheriting(own: Sequence[Sentence], above: tuple[int, ...]) -> Iterator[Sentence]:
    """Those without a citation get the nearest of the block; of two as near, both."""
    before = _distances(own)
    behind = list(reversed(_distances(list(reversed(own)))))
    for one, earlier, later in zip(own, before, behind, strict=True):
        if one.cites:
            yield one
            continue
        near = [each for each in (earlier, later) if each is not None]
        least = min((distance for distance, _ in near), default=0)
        found = [n for distance, cites in near if distance == least for n in cites]
        yield Sentence(
            one.text, one.start, one.end, one.mark_at, (),
            tuple(dict.fromkeys(found)) or above, one.code,
        )  # fmt: skip


def _distances(own: Sequence[Sentence]) -> list[tuple[int, tuple[int, ...]] | None]:
    found: list[tuple[int, tuple[int, ...]] | None] = []
    latest: tuple[int, tuple[int, ...]] | None = None
    for at, one in enumerate(own):
        found.append((at - latest[0], latest[1]) if latest else None)
        if one.cites:
            latest = (at, one.cites)
    return found


def directions(text: str) -> list[tuple[str, bool]]:
    """The directions a sentence claims (up, down, flat, odd), each with whether it is denied."""
    text = OTHER_DROP.sub(" ", text)
    found: dict[tuple[str, bool], None] = {}
    for match in DIRECTION.finditer(text):
        before = text[max(0, match.start() - 30) : match.start()]
        denied = _NOT.search(before) is not None and match.lastgroup is not None
        found[(match.lastgroup or "", denied)] = None
    return list(found)


def agrees(claimed: str, denied: bool, went: str) -> bool:
    same = went != "flat" if claimed == "odd" else claimed == went
    return same != denied


def own_figures_disagree(text: str, claimed: list[tuple[str, bool]]) -> bool:
    """A rise to less, or a fall to more, by the figures of the sentence itself."""
    ways = {way for way, denied in claimed if not denied and way in ("up", "down")}
    if len(ways) != 1:
        return False
    spans = [(m[1], m[2], m[3], m[4]) for m in _FROM_TO.finditer(text)]
    spans += [(m[3], m[4], m[1], m[2]) for m in _TO_USUALLY.finditer(text)]
    for first, first_unit, last, last_unit in spans:
        if first_unit and last_unit and first_unit != last_unit:
            continue
        before, after = float(first.replace(",", "")), float(last.replace(",", ""))
        if after != before and (after > before) != (ways == {"up"}):
            return True
    return False


def is_open(text: str) -> bool:
    """A question, a possibility, or a statement about the unknown: it claims nothing."""
    return _OPEN.search(text) is not None


def is_suggestion(text: str) -> bool:
    if _SUGGESTED.match(text):
        return True
    there = plain(text)
    return any(word in there for word in _SUGGESTING) and _SUGGESTED.search(text) is not None


def admits_failure(text: str) -> bool:
    """It says that something could not be had."""
    return _ADMITS.search(text) is not None
