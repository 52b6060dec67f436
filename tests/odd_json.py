"""Entries of JSON lists, as text, that are none of any system's documented shapes."""

from typing import Final

# The last is half a character (a lone surrogate), which is no valid JSON for strict parsers.
ODD: Final = ("null", "7", '"x"', "{}", "18446744073709551616", '{"a.b/c d": null}', r'"\ud800"')
