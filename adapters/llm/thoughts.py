"""Thoughts that a model writes into its answer, where a server does not keep them apart.

People see none of them, and nothing in them is a call. Templates that end the prompt with the tag that begins
a thought leave only its end in the answer: then all that came before was the thought.
"""

import re
from typing import Final

from adapters.llm.messages import CompleteRequest

# DeepSeek R1, Qwen3, MiniMax, Hermes; Granite, EXAONE; Seed-OSS; Magistral; Kimi-VL; Cohere; gpt-oss.
_WORDS: Final = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "mm:think")
_ENDS: Final = {f"<{word}>": f"</{word}>" for word in _WORDS} | {
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|end|>",
}
# Marks around the answer behind a thought.
_FRAMES: Final = (
    "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>",
    "<|return|>",
    "<|start_response|>",
    "<|end_response|>",
    "<|begin_of_solution|>",
    "<|end_of_solution|>",
    "<|begin_of_box|>",
    "<|end_of_box|>",
)
# A message's end may end other messages too, so it is no thought's without its beginning.
_CLOSES: Final = frozenset(_ENDS.values()) - {"<|end|>"}
_MARKS: Final = (*_ENDS, *_CLOSES, *_FRAMES)
_MOST_MARK_CHARS: Final = max(map(len, _MARKS))
_MARK: Final = re.compile(
    "|".join(map(re.escape, sorted(_MARKS, key=len, reverse=True))), re.IGNORECASE
)
_MAY_BEGIN: Final = re.compile(r"[<\[◁]")
_QUOTES: Final = frozenset("`\"'")  # an empty text is not a quote


class Thoughts:
    """Of one answer. `found`: some of it was a thought."""

    __slots__ = ("_before", "_end", "_has_ended", "_is_shown", "_pending", "_request", "found")

    def __init__(self, request: CompleteRequest) -> None:
        self._request = request
        self._pending = ""  # may be a mark, or become one
        self._before = ""  # the character before it
        self._end = ""  # of the thought that goes on
        self._has_ended = False  # a thought ended, and its beginning was not seen
        self._is_shown = False
        self.found = False

    def feed(self, text: str) -> tuple[bool, str]:
        """Whether all that was shown before was a thought, and what to show now."""
        return self._read(text, is_last=False)

    def close(self, *, has_calls: bool) -> tuple[bool, str]:
        """The same at the end of the answer. `has_calls`: it has more than words."""
        is_void, shown = self._read("", is_last=True)
        self.found = self.found or self._has_ended
        return is_void or (self._has_ended and has_calls), shown

    def _read(self, piece: str, *, is_last: bool) -> tuple[bool, str]:
        text, self._pending = self._pending + piece, ""
        is_void, shown, at = False, list[str](), 0
        while at < len(text):
            if self._end:
                at = self._skip(text, at, is_last=is_last)
                continue
            mark = _MARK.search(text, at)
            if mark and mark.end() == len(text) and not is_last:
                mark = None  # what follows says whether it is a word
            end = mark.start() if mark else len(text) if is_last else _undecided(text, at)
            is_void = self._say(text[at:end], shown) or is_void
            if mark is None:
                self._pending = text[end:]
                break
            at = mark.end()
            if self._is_word(mark, text):
                is_void = self._say(mark[0], shown) or is_void
            else:
                self._apply(mark[0].lower())
        return is_void, "".join(shown)

    def _skip(self, text: str, at: int, *, is_last: bool) -> int:
        end = text.lower().find(self._end, at)
        if end < 0:
            self._pending = "" if is_last else text[max(at, len(text) - len(self._end) + 1) :]
            return len(text)
        end += len(self._end)
        self._end = ""
        return end

    def _say(self, text: str, shown: list[str]) -> bool:
        is_void = self._has_ended and bool(text.strip())
        if is_void:
            self._has_ended = self._is_shown = False
            self.found = True
            shown.clear()
        if self.found and not self._is_shown:
            text = text.lstrip()
        if text:
            shown.append(text)
            self._before = text[-1]
            self._is_shown = self._is_shown or bool(text.strip())
        return is_void

    def _apply(self, mark: str) -> None:
        if mark in _ENDS:
            self._end, self.found = _ENDS[mark], True
        elif mark in _CLOSES:
            self._has_ended = self._is_shown
            self.found = self.found or not self._is_shown

    def _is_word(self, mark: re.Match[str], text: str) -> bool:
        """Whether the answer mentions the mark: it is quoted, between words, or was read."""
        before = text[mark.start() - 1 : mark.start()] or self._before
        after = text[mark.end() : mark.end() + 1]
        word = mark[0].lower()
        if before in _QUOTES or after in _QUOTES:
            return True
        return (word in _ENDS and (before, after) == (" ", " ")) or self._was_read(word)

    def _was_read(self, word: str) -> bool:
        return any(
            word in content.lower()
            for message in self._request.messages
            for content in (
                message.text,
                message.told,
                message.tool_result.content if message.tool_result else "",
            )
        )


def _undecided(text: str, at: int) -> int:
    for begin in _MAY_BEGIN.finditer(text, max(at, len(text) - _MOST_MARK_CHARS)):
        end = text[begin.start() :].lower()
        if any(mark.startswith(end) for mark in _MARKS):
            return begin.start()
    return len(text)
