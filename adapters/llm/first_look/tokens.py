"""How many tokens a text may take, without a tokenizer.

Held against the vocabulary of Qwen2.5, of which every figure is a token for each digit: words of people
took half of what is said here, random letters, hexadecimal and marks about as much.
"""

import re
from typing import Final

_PIECES: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]|[^\x00-\x7f]+|[^\sA-Za-z0-9]|\s\s+")
# No syllable: such letters stand in no vocabulary together.
_NO_WORD: Final = re.compile(r"[^aeiouy]{4}|^[^aeiouy]{2,}$", re.IGNORECASE)
_OF_A_WORD: Final = 0.2  # tokens of a letter
_OF_NO_WORD: Final = 0.7


def most_tokens_of(text: str) -> int:
    """What it takes at most, as far as that can be said."""
    return sum(_of(piece) for piece in _PIECES.findall(text))


def cut_to(text: str, most_tokens: int) -> str:
    """As much of its beginning as takes no more."""
    spent = 0
    for found in _PIECES.finditer(text):
        spent += _of(found[0])
        if spent > most_tokens:
            return text[: found.start()]
    return text


def _of(piece: str) -> int:
    if not piece.isascii():
        return len(piece.encode())  # byte by byte at worst
    if not piece.isalpha():
        return 1
    each = _OF_NO_WORD if _NO_WORD.search(piece) else _OF_A_WORD
    return 1 + int(len(piece) * each)
