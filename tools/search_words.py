"""Text as words to search by, made the same way for documents and queries.

The databases only match whole words, so both find the same, and text cannot break a query: a word
is letters and digits alone. English endings are cut, accents dropped, scripts without blanks
between words become pairs of letters. Words that begin with `_` are labels of ours.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import lru_cache

MAX_WORDS = 1000  # of one document: the index stays small however long a report is
MAX_MERGED_WORDS = 2000  # of many that were added to one another
MAX_WORD_CHARS = 64
_LABEL = "_"  # the beginning of a label; no word has it
# PostgreSQL's index of words takes none of more than 2,712 bytes; a product's name is what a model says.
_MAX_LABEL_CHARS = 254
_MAX_MERGED_LABELS = 100
TITLE_BONUS = 0.5  # a word of the title counts half as much again
_WORD = re.compile(r"[^\W_]+")
# Chinese, Japanese and Korean letters, which have no blanks between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been by did do does for from had has have how i in is it its no not of"
        " on or so than that the their then there these this to was we were what when where which"
        " who why will with",
    )
)


def words_of(text: str) -> list[str]:
    plain = text.lower() if text.isascii() else _unaccented(text)
    parts = dict.fromkeys(_WORD.findall(plain))
    if plain.isascii():
        found = dict.fromkeys([_stem(part)[:MAX_WORD_CHARS] for part in parts])
    else:
        found = dict.fromkeys([word for part in parts for word in _split(part)])
    return [word for word in found if word and word not in _STOP]


def _unaccented(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c)))


def document(texts: Iterable[str], labels: Iterable[str]) -> str:
    """The words of a document as they are stored: separated by one blank."""
    found = dict.fromkeys(word for text in texts for word in words_of(text))
    return " ".join([*dict.fromkeys(labels), *list(found)[:MAX_WORDS]])


def merged(older: str, newer: str, title: str) -> str:
    """The words of one document added to another.

    First the words of the title that they contain; of labels and other words the newer first, as
    many as fit.
    """
    found = dict.fromkeys([*words_of(title), *newer.split(), *older.split()])
    labels = [each for each in found if each.startswith(_LABEL)]
    words = [each for each in found if not each.startswith(_LABEL)]
    return " ".join([*labels[:_MAX_MERGED_LABELS], *words[:MAX_MERGED_WORDS]])


def weight(counts: Mapping[str, int], held: Collection[str], titled: Collection[str]) -> float:
    """How well a document answers: the asked words it holds, rare ones and its title's counting more.

    `counts` says in how many documents each asked word is.
    """
    return sum(
        (1.0 + TITLE_BONUS * (word in titled)) / (1.0 + math.log1p(count))
        for word, count in counts.items()
        if word in held
    )


def product_label(product: str) -> str:
    """The label of a product; different products have different ones, of 256 characters at most."""
    name = product.casefold()
    label = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
    if len(label) > _MAX_LABEL_CHARS:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        label = f"{label[: _MAX_LABEL_CHARS - len(digest)]}{digest}"
    return f"{_LABEL}p{label}"


def month_label(at: datetime) -> str:
    return f"{_LABEL}m{at.year:04d}{at.month:02d}"


def month_labels(start: datetime, end: datetime) -> list[str]:
    first, last = start.year * 12 + start.month - 1, end.year * 12 + end.month - 1
    return [f"{_LABEL}m{n // 12:04d}{n % 12 + 1:02d}" for n in range(first, last + 1)]


def _split(part: str) -> Iterable[str]:
    if part.isascii():
        yield _stem(part)[:MAX_WORD_CHARS]
        return
    for run in _UNSPACED.findall(part):
        yield from (run[n : n + 2] for n in range(max(1, len(run) - 1)))
    for rest in _UNSPACED.sub(" ", part).split():
        yield _stem(rest)[:MAX_WORD_CHARS]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    if len(word) < 4 or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and re.search("[aeiouy]", rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "xes", "zes", "sses")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
