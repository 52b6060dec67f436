"""What a result says of each product, and of nobody in particular."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.chat.claims.clocks import STAMP, clock, clocks_in, instants
from bot.chat.claims.quantities import Known

_NOBODY = ("",)


@dataclass(frozen=True, slots=True)
class Own:
    """Numbers, those of the time before, minutes and words, in lower case."""

    numbers: Sequence[Known]
    usual: Sequence[Known]
    clocks: frozenset[str]
    text: str


def by_owner(
    numbers: Sequence[Known],
    usual: Sequence[Known],
    texts: Sequence[tuple[frozenset[str], str]],
) -> Mapping[str, Own]:
    """By the product in lower case; what is of no product's row under the empty name."""
    of_all: dict[str, list[Known]] = {}
    of_usual: dict[str, list[Known]] = {}
    said: dict[str, list[str]] = {}
    for found, by in ((numbers, of_all), (usual, of_usual)):
        for number in found:
            for whose in number.of or _NOBODY:
                by.setdefault(whose, []).append(number)
    for of, text in texts:
        for whose in of or _NOBODY:
            said.setdefault(whose, []).append(text)
    return {
        whose: _own(of_all.get(whose, ()), of_usual.get(whose, ()), said.get(whose, ()))
        for whose in of_all.keys() | said.keys()
    }


def joined(owns: Mapping[str, Own], of: Collection[str]) -> Own:
    """What is of these, and of nobody."""
    found = [owns[one] for one in ("", *sorted(of)) if one in owns]
    return Own(
        [number for one in found for number in one.numbers],
        [number for one in found for number in one.usual],
        frozenset(minute for one in found for minute in one.clocks),
        "\n".join(one.text for one in found),
    )


def _own(numbers: Sequence[Known], usual: Sequence[Known], texts: Sequence[str]) -> Own:
    text = "\n".join(texts)
    clocks = frozenset(map(clock, instants(text))) | clocks_in(STAMP.sub(" ", text))
    return Own(numbers, usual, clocks, text.lower())
