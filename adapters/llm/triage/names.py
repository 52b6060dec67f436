"""Names from outside, made safe for an answer."""

import re

# An underscore is part of a name between letters only; at an edge it is emphasis.
_NOT_A_NAME = re.compile(r"(?:[^\w.+:/-]|:/+|(?<![^\W_])_|_(?![^\W_]))+")
_LONGEST_NAME = 64


def plain(text: str) -> str:
    """A name from outside as one word: no formatting, link, mention or second line survives."""
    return _NOT_A_NAME.sub("-", text)[:_LONGEST_NAME]
