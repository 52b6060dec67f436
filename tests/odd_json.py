"""JSON outside any system's documented shapes: entries of lists, instants and labels."""

from typing import Final

# The last is half a character (a lone surrogate), which is no valid JSON for strict parsers.
ODD: Final = ("null", "7", '"x"', "{}", "18446744073709551616", '{"a.b/c d": null}', r'"\ud800"')

# Values of an instant that say no instant; the first four mean that none is set.
NO_INSTANTS: Final[tuple[object, ...]] = (
    None, "", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "yesterday", "2026-04-07T14:31:00",
    "2026-13-41T99:00:00Z", "9999-12-31T23:59:59Z", 1 << 64, -1, True, [], {"seconds": None}, "\ud800",
    "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-14:00", "9999-12-31T23:59:59-12:00", "0000-00-00T00:00:00Z",
    "+010000-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-11-28T15:00:60Z", "\u0662\u0660\u0662\u0666-11-28T15:00:00Z",
    -62_135_596_800, "now",
)  # fmt: skip
# Values of a label, and the text of each; None for an absent label.
LABEL_TEXTS: Final[tuple[tuple[object, str | None], ...]] = (
    (7, "7"), (1 << 64, "18446744073709551616"), (0.5, "0.5"), (True, "true"), (None, None),
    (["a", None], '["a",null]'), ({"a.b": None}, '{"a.b":null}'), ("\ud800", "?"), ("7", "7"),
)  # fmt: skip
