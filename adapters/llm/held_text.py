"""A streamed answer, held back where a tool call may have begun.

Text that begins like a chat template or Python is held to the end. JSON is held until its last
bracket, and then shown unless it looks like a call. At the end the held text becomes calls, or is
shown without parts that look like calls.
"""

import re
from typing import Final

from adapters.llm.brackets import Brackets
from adapters.llm.call_forms import INLINE_BEGINNING, LEAD, PLAIN_BEGINNINGS
from adapters.llm.messages import CompleteRequest, ToolCall
from adapters.llm.named_calls import begins_line, begins_word, start_of, tool_names
from adapters.llm.written_calls import CONTEXT_CHARS, MOST_CHARS, without_calls, written_calls

_INLINE_BEGINNING: Final = re.compile(INLINE_BEGINNING)
_LEAD: Final = re.compile(LEAD)
_OPEN_LEAD: Final = re.compile(rf"{LEAD}(?:[-*+•>|]|[0-9]{{1,3}}[.)]?)?[ \t]{{0,3}}[\"'`]{{0,3}}")
# How a line continues that cannot become a call.
_NO_CALL: Final = re.compile(
    r"[ \t]{0,3}+(?:"
    r"\r?\n"
    r"|[^\s{\[<`]"
    r"|[ \t]"
    r"|`{1,2}[^`]"
    r"|`{4}"
    r"|(?:```[^\n`]*\n\s*+)?"
    r"(?:\{\s*+\\*+[^\"'\\]|\[\s*+(?:[^{\w]|\w++[^\w(])|<[^\w|/｜<]|</?\w++[^\w:])"
    r"|```[^\n`]*(?:`|\n\s*+[^{\[<])"
    r")"
)
_FENCE_LINE: Final = re.compile(r"\A```[^\n`]*\n\s*+")
_UNDECIDED_CHARS: Final = 160
_ACTION: Final = re.compile(
    r"Action:[ \t]{0,8}[\w.-]{0,64}[ \t]{0,8}\r?(?:\n(?P<next>.*))?", re.DOTALL
)


class HeldText:
    """One answer's text. `feed` returns the text to show now, `close` the rest."""

    __slots__ = (
        "_before", "_brackets", "_context", "_held", "_held_chars", "_is_final", "_names", "_passes",
        "_pending", "_request", "_shown", "_start", "is_withheld",
    )  # fmt: skip

    def __init__(self, request: CompleteRequest) -> None:
        self._request = request
        self._names = tool_names(request)
        self._start = start_of(self._names)
        self._passes = False  # all of the rest
        self._pending = ""  # may become the beginning of a call
        self._before = "\n"  # the text before it
        self._context = ""  # the text before what is held
        self._held: list[str] = []
        self._held_chars = 0
        self._brackets: Brackets | None = None  # of JSON that is held until it ends
        self._is_final = False  # held text stays held to the end
        self._shown: list[str] = []
        self.is_withheld = False

    def feed(self, text: str) -> str:
        """The text that is certainly not a call."""
        if self._passes:
            return text
        shown = self._read(text)
        if self._held_chars > MOST_CHARS:
            self._passes = True
            shown += self._without_calls("".join(self._held))
            self._held = []
        if shown:
            self._shown.append(shown)
        return shown

    def close(
        self, *, may_call: bool, has_thought: bool = False
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """The remaining text, and the calls found in it.

        `may_call`: the answer is whole, and the model made no call of its own. `has_thought`: it
        wrote more than people see.
        """
        rest = "".join(self._held) + self._pending
        self._pending, self._held, self._passes = "", [], True
        if may_call and rest:
            whole = "".join([*self._shown, rest])
            found = written_calls(whole, self._request, has_thought=has_thought)
            if found is not None:
                return "", found
        return self._without_calls(rest), ()

    def _without_calls(self, text: str) -> str:
        left = without_calls(text, self._request, "".join(self._shown))
        self.is_withheld = self.is_withheld or left != text
        return left

    def _read(self, piece: str) -> str:
        text, at = self._before + self._pending + piece, len(self._before)
        shown: list[str] = []
        self._pending = ""
        while at < len(text):
            if self._is_final:
                at = self._hold(text, at, len(text))
            elif self._brackets is not None:
                end = self._brackets.end(text, at)
                at = self._hold(text, at, end or len(text))
                shown.append(self._ended() if end else "")
            elif start := self._start.search(text, at):
                shown.append(text[at : start.start()])
                at = self._begin(text, start)
            else:
                end = _decided_until(text, at, self._names)
                shown.append(text[at:end])
                self._pending = text[end:]
                self._before = text[max(0, end - CONTEXT_CHARS) : end]
                return "".join(shown)
        self._before = text[-CONTEXT_CHARS:]
        return "".join(shown)

    def _begin(self, text: str, start: re.Match[str]) -> int:
        data = start["json"] or start["data"]
        if not data:
            self._is_final = True
            return start.start()
        self._brackets = Brackets()
        self._context = text[max(0, start.start() - CONTEXT_CHARS) : start.start()]
        return self._hold(text, start.start(), start.end() - len(data.lstrip("\"'`")))

    def _hold(self, text: str, at: int, end: int) -> int:
        self._held.append(text[at:end])
        self._held_chars += end - at
        return end

    def _ended(self) -> str:
        self._brackets = None
        found = "".join(self._held)
        if without_calls(found, self._request, self._context) != found:
            self._is_final = True
            return ""
        self._held, self._held_chars = [], 0
        return found


def _decided_until(text: str, at: int, names: frozenset[str]) -> int:
    first = max(at, len(text) - _UNDECIDED_CHARS)
    line = first if text[first - 1] == "\n" else text.find("\n", first) + 1
    while line and not _may_become_call(text[line:], names):
        line = text.find("\n", line) + 1
    found = _INLINE_BEGINNING.search(text, first)
    word = begins_word(text, first, names)
    places = (line or None, found.start() if found else None, word)
    return min((each for each in places if each is not None), default=len(text))


def _may_become_call(line: str, names: frozenset[str]) -> bool:
    if _OPEN_LEAD.fullmatch(line):
        return True
    lead = _LEAD.match(line)
    head = line[lead.end() :] if lead else line
    if begins_line(_FENCE_LINE.sub("", head), names):
        return True
    if head[:1] in {" ", "\t"}:
        return False
    code = _FENCE_LINE.sub("", head) or head
    if any(code.startswith(word) or word.startswith(code) for word in PLAIN_BEGINNINGS[1:]):
        return True
    action = _ACTION.fullmatch(head)
    if action or "Action:".startswith(head):
        following = action["next"] if action else None
        return following is None or "Action Input:".startswith(following)
    return not _NO_CALL.match(head)
