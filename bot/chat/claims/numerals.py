"""Numbers that a sentence spells out, written in digits: `nine seconds`, `doubled`, `a third of`."""

import re
from typing import Final

_ONES: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SIZES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_FRACTIONS: Final = {
    "half": 1 / 2,
    "third": 1 / 3,
    "quarter": 1 / 4,
    "fifth": 1 / 5,
    "tenth": 1 / 10,
}
# A way and a factor in one word. `fold` is rounder than `x`.
_CHANGES: Final = {
    "doubled": "rose 2 fold", "tripled": "rose 3 fold", "trebled": "rose 3 fold", "quadrupled": "rose 4 fold",
    "quintupled": "rose 5 fold", "halved": "fell 0.5 fold", "doubling": "rising 2 fold", "tripling": "rising 3 fold",
    "twice": "2 fold", "thrice": "3 fold", "twofold": "2 fold", "threefold": "3 fold", "fourfold": "4 fold",
    "fivefold": "5 fold", "tenfold": "10 fold", "hundredfold": "100 fold", "double": "2 fold", "triple": "3 fold",
}  # fmt: skip
_WORD = "|".join([*_ONES, *_TENS])
_RUN = re.compile(
    rf"\b(?:(?:{_WORD}|hundred|thousand|million|a (?=hundred|thousand|million))"
    rf"(?:[ -](?:and )?(?:{_WORD}|hundred|thousand|million)\b){{0,6}})(?![\w-])",
    re.IGNORECASE,
)
_DOZEN = re.compile(r"\b(?:(a|one|two|three) dozen|a dozen|dozen)\b", re.IGNORECASE)
_CHANGE = re.compile(rf"\b((?:more|less) than )?({'|'.join(_CHANGES)})\b", re.IGNORECASE)
_PART = re.compile(
    r"\b(?:(a|one|two|three|four) )?(half|third|quarter|fifth|tenth)s?(?= (?:of|the|all|are|fail))",
    re.IGNORECASE,
)
_ONE_IN = re.compile(
    r"\b(?:one|1|every (?:second|third|fifth|tenth)) (?:in|out of) (?:every )?(\w+)", re.IGNORECASE
)
_UNITS_OF_ONE = re.compile(
    r"[ -](?:second|minute|hour|day|ms|pod|replica|node|deploy|release|error|line|restart|of \d|warning|event|host|in \w)",
    re.IGNORECASE,
)
_OUT_OF = re.compile(
    r"(?<![\w./])(\d{1,4})/(\d{1,4})(?= (?:[\w.-]{1,60} )?(?:pods?|replicas?|nodes?|containers?|instances?)\b)"
)
_ANY = re.compile(
    rf"\b(?:{_WORD}|hundred|thousand|million|dozen|half|third|quarter|fifth|tenth|{'|'.join(_CHANGES)})",
    re.IGNORECASE,
)


def in_digits(text: str) -> tuple[str, dict[str, str]]:
    """The text with its spelled numbers as digits, and each of them with the words it came from."""
    if "/" in text:
        text = _OUT_OF.sub(r"\1 of \2", text)
    if not _ANY.search(text):
        return text, {}
    words: dict[str, str] = {}

    def kept(match: re.Match[str], figure: str) -> str:
        digits = re.search(r"\d[\d.]*", figure)
        if digits is not None:
            words[digits[0]] = match[0].strip()
        return figure

    text = _ONE_IN.sub(_one_in, text)
    text = _CHANGE.sub(lambda m: kept(m, _change(m)), text)
    text = _PART.sub(lambda m: kept(m, _share(m)), text)
    text = _DOZEN.sub(lambda m: kept(m, str(12 * _ONES.get((m[1] or "one").lower(), 1))), text)
    return _RUN.sub(lambda m: kept(m, _number(m)), text), words


def _change(match: re.Match[str]) -> str:
    """The bound stands at the figure: `rose more than 3 fold`, of "more than tripled"."""
    change = _CHANGES[match[2].lower()]
    return re.sub(r"(?=\d)", match[1] or "", change, count=1)


def _one_in(match: re.Match[str]) -> str:
    of = match[1].lower()
    digits = _ONES.get(of) or _TENS.get(of) or (int(of) if of.isdigit() and len(of) < 6 else 0)
    return f"1 in {digits}" if digits else match[0]


def _share(match: re.Match[str]) -> str:
    many = _ONES.get((match[1] or "one").lower(), 1)
    return f"about {100 * many * _FRACTIONS[match[2].lower()]:.3g} %"


def _number(match: re.Match[str]) -> str:
    said = match[0].lower()
    # "One" alone is mostly no number: "one of them", "the one that failed".
    if said == "one" and not _UNITS_OF_ONE.match(match.string, match.end()):
        return match[0]
    total = part = 0
    for word in re.split(r"[ -]", said):
        if word in _SIZES:
            part = max(1, part) * _SIZES[word]
            if _SIZES[word] > 100:
                total, part = total + part, 0
        else:
            part += _ONES.get(word, _TENS.get(word, 0))
    return str(total + part)
