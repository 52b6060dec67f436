"""Text as it streams, held back from where a call may have been written into it.

Nobody should watch a call grow as if it were an answer. Most text passes untouched; what is held
is given at the end: as calls, or as the text that it was.
"""

import re
from typing import Final

from adapters.llm.messages import CompleteRequest, ToolCall
from adapters.llm.written_calls import BEGINS, FENCE, MOST_CHARS, written_calls

_CALL: Final = re.compile(rf"[ \t]{{0,3}}(?:{FENCE})?(?:{BEGINS})")
# How a line goes on that can no longer become the beginning of a call.
_NO_CALL: Final = re.compile(
    r"[ \t]{0,3}+(?:"
    r"\r?\n"
    r"|[^\s{\[<`]"
    r"|[ \t]"
    r"|`{1,2}[^`]"
    r"|`{4}"
    r"|(?:```[^\n`]*\n\s*+)?"
    r'(?:\{\s*+(?:[^"]|"[^"]*")|\[\s*+[^{T]|\[T[^O]|<[^\w|]|<\|[^pt]|<\w++.)'
    r"|```[^\n`]*(?:`|\n\s*+[^{\[<])"
    r")"
)
_UNDECIDED_CHARS: Final = 160


class HeldText:
    """One answer's text. `feed` gives what may be shown now, `close` the rest."""

    __slots__ = ("_begun", "_held", "_held_chars", "_passes", "_request", "_shown")

    def __init__(self, request: CompleteRequest) -> None:
        self._request = request
        self._passes = not request.tools
        self._begun: str | None = ""  # of a line that may become a call; None: within another line
        self._held: list[str] = []
        self._held_chars = 0
        self._shown: list[str] = []

    def feed(self, text: str) -> str:
        """The part of it, and of what came before, that is no call."""
        if self._passes:
            return text
        if self._held:
            return self._hold(text)
        within = self._begun is None and "\n" not in text
        shown = text if within else self._read(text)
        if shown:
            self._shown.append(shown)
        return shown

    def close(self, *, may_call: bool) -> tuple[str, tuple[ToolCall, ...]]:
        """What is left to show, and the calls that it was instead.

        `may_call`: the answer is whole, and the model made no call of its own.
        """
        rest = "".join(self._held) + (self._begun or "")
        self._held, self._begun, self._passes = [], None, True
        if may_call and rest:
            found = written_calls("".join([*self._shown, rest]), self._request)
            if found is not None:
                return "", found
        return rest, ()

    def _hold(self, text: str) -> str:
        self._held.append(text)
        self._held_chars += len(text)
        if self._held_chars <= MOST_CHARS:
            return ""
        self._passes = True
        shown, self._held = "".join(self._held), []
        return shown

    def _read(self, text: str) -> str:
        at = 0 if self._begun is not None else text.find("\n") + 1
        text = (self._begun or "") + text
        while True:
            if _CALL.match(text, at):
                self._begun = None
                return text[:at] + self._hold(text[at:])
            if len(text) - at <= _UNDECIDED_CHARS and not _NO_CALL.match(text, at):
                self._begun = text[at:]
                return text[:at]
            at = text.find("\n", at) + 1
            if not at:
                self._begun = None
                return text
