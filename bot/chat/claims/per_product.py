"""What a result says of each product, and of none in particular."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from bot.chat.claims.clocks import STAMP, Clocks, clocks_in, minutes
from bot.chat.claims.json_index import JsonIndex
from bot.chat.claims.quantities import Figure, KnownNumber, Numbers

_NOBODY = frozenset({""})


class Part:
    """Numbers, those of the time before, minutes and words. Each is made when first asked for."""

    def __init__(
        self, numbers: Collection[KnownNumber], usual: Collection[KnownNumber], texts: Sequence[str]
    ) -> None:
        self._known = numbers
        self._usual = usual
        self._texts = texts
        self._told: dict[str, bool] = {}

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(self._known)

    @cached_property
    def usual(self) -> Numbers:
        """Those of the time before."""
        return Numbers(self._usual)

    @cached_property
    def text(self) -> str:
        """Its words, in lower case."""
        return self._said.lower()

    def tells(self, figure: Figure) -> bool:
        """As written, with its unit, as a word: `250m`, `1m 58s`."""
        told = self._told.get(figure.text)
        if told is None:
            written = {figure.text.lower(), figure.key.lower()}
            told = self._told[figure.text] = any(_has_word(self.text, one) for one in written)
        return told

    @cached_property
    def clocks(self) -> Clocks:
        return Clocks(self._said, self._minutes)

    def _minutes(self) -> frozenset[str]:
        return minutes(self._said) | clocks_in(STAMP.sub(" ", self._said))

    @cached_property
    def _said(self) -> str:
        return "\n".join(self._texts)


class Whole(Part):
    """A whole result: its values, its summary, and the arguments."""

    def _minutes(self) -> frozenset[str]:
        content, summary, *_ = self._texts
        return minutes(self.text.upper()) | clocks_in(STAMP.sub(" ", f"{content} {summary}"))


def parts_of(index: JsonIndex, summary: str) -> Mapping[frozenset[str], Part]:
    """The parts by their products, in lower case; those about no product under the empty name."""
    texts: dict[frozenset[str], list[str]] = {_NOBODY: [summary]}
    for of, text in index.texts:
        texts.setdefault(of or _NOBODY, []).append(text)
    owners = texts.keys() | {of or _NOBODY for of in index.numbers}
    return {
        of: Part(
            [n for each in _of(of) for n in index.numbers.get(each, ())],
            [n for each in _of(of) for n in index.usual.get(each, ())],
            texts.get(of, ()),
        )
        for of in owners
    }


def _of(owners: frozenset[str]) -> tuple[frozenset[str], ...]:
    return (owners, frozenset()) if owners == _NOBODY else (owners,)


def of_these(parts: Mapping[frozenset[str], Part], named: Collection[str]) -> Sequence[Part]:
    """The parts about these products, and those about none."""
    asked = _NOBODY.union(named)
    return [part for of, part in parts.items() if not asked.isdisjoint(of)]


def _has_word(text: str, written: str) -> bool:
    at = text.find(written)
    while at >= 0:
        end = at + len(written)
        if (
            not (text[at - 1 : at].isalnum() or text[at - 1 : at] in (".", ","))
            and not text[end : end + 1].isalnum()
        ):
            return True
        at = text.find(written, end)
    return False
