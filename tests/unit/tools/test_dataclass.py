"""Our dataclasses, beside the standard library's of the same text."""

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from math import nan
from typing import Any, Protocol

import pytest
from pydantic import TypeAdapter

from tools.dataclass import dataclass

Made = list[type[Any]]


class _Named(Protocol):
    name: str


def _classes(decorator: Any) -> dict[str, type[Any]]:
    """The same ones by either decorator."""

    @decorator(frozen=True, slots=True)
    class Bare:
        pass

    @decorator(frozen=True, slots=True)
    class One:
        value: float

    @decorator(frozen=True, slots=True)
    class Whole(_Named):
        """With each kind of field."""

        name: str
        secret: str = field(default="", repr=False)
        parts: list[int] = field(default_factory=list)
        beside: int = field(default=0, compare=False)
        last: int = field(kw_only=True, default=3)
        made: int = field(init=False, default=7)
        later: str = field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.name.upper())

    @decorator(frozen=True, slots=True)
    class Derived(Whole):
        more: tuple[str, ...] = ()

    @decorator(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator makes it
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        first: int
        second: int = 2

    @decorator(slots=True)
    class Mutable:
        seen: list[int] = field(default_factory=list)
        count: int = 0

    @decorator(slots=True, eq=False)
    class Same:
        value: int = 0

    return {each.__name__: each for each in (Bare, One, Whole, Derived, Own, Named, Mutable, Same)}


OURS, THEIRS = _classes(dataclass), _classes(dataclasses.dataclass)
MAKES: tuple[Callable[[dict[str, type[Any]]], Any], ...] = (
    lambda known: known["Bare"](),
    lambda known: known["One"](1.5),
    lambda known: known["Whole"]("a"),
    lambda known: known["Whole"]("a", "hidden", [1], 5, last=4),
    lambda known: known["Whole"](name="a", parts=[2]),
    lambda known: known["Derived"]("a", more=("x",)),
    lambda known: known["Own"](1),
    lambda known: known["Named"](first=1),
    lambda known: known["Mutable"]([1], 2),
    lambda known: replace(known["Whole"]("a", "hidden"), name="b"),
    lambda known: replace(known["Derived"]("a"), more=("y",)),
)


@pytest.mark.parametrize("make", MAKES)
def test_it_reads_and_holds_what_the_librarys_does(make: Any) -> None:
    ours, theirs = make(OURS), make(THEIRS)

    assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert type(ours).__match_args__ == type(theirs).__match_args__
    assert type(ours).__slots__ == type(theirs).__slots__
    assert [each.name for each in dataclasses.fields(ours)] == [
        each.name for each in dataclasses.fields(theirs)
    ]


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("other", MAKES)
def test_it_is_equal_to_what_the_librarys_would_be_equal_to(make: Any, other: Any) -> None:
    assert (make(OURS) == make(OURS)) == (make(THEIRS) == make(THEIRS))
    assert (make(OURS) == other(OURS)) == (make(THEIRS) == other(THEIRS))


def test_a_value_that_equals_nothing_is_itself() -> None:
    assert OURS["One"](nan) == OURS["One"](nan)
    assert OURS["One"](float("nan")) != OURS["One"](float("nan"))
    assert OURS["Same"]() != OURS["Same"]()


def test_equal_ones_have_one_hash_and_mutable_ones_none() -> None:
    assert len({OURS["One"](1), OURS["One"](1.0), OURS["One"](2)}) == 2
    assert len({OURS["Bare"](), OURS["Bare"]()}) == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(OURS["Mutable"]())


@pytest.mark.parametrize("name", ["value", "anything"])
def test_nothing_of_a_frozen_one_changes(name: str) -> None:
    made = OURS["One"](1)

    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(made, name, 2)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(made, name)
    assert made == OURS["One"](1)


@pytest.mark.parametrize(
    ("name", "given"),
    [("One", {}), ("One", {"value": 1, "more": 2}), ("Named", {"second": 1}), ("Bare", {"x": 1})],
)
def test_what_it_cannot_be_made_of_is_told_alike(name: str, given: dict[str, int]) -> None:
    told = []
    for known in (OURS, THEIRS):
        with pytest.raises(TypeError) as raised:
            known[name](**given)
        told.append(str(raised.value))

    assert told[0] == told[1]


def test_no_list_is_shared_between_two() -> None:
    first, second = OURS["Whole"]("a"), OURS["Whole"]("a")
    first.parts.append(1)

    assert second.parts == []


def test_one_that_holds_itself_can_be_told() -> None:
    made = OURS["Mutable"]()
    made.seen.append(made)

    assert repr(made).endswith("Mutable(seen=[...], count=0)")


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    parts: tuple[int, ...] = ()


def _sent(value: Kept) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _sent])
def test_it_is_copied_whole(copied: Callable[[Kept], Kept]) -> None:
    assert copied(Kept("a", (1, 2))) == Kept("a", (1, 2))


def test_it_is_validated_and_written_like_the_librarys() -> None:
    adapter = TypeAdapter(Kept)

    assert adapter.validate_json('{"name": "a", "parts": [1]}') == Kept("a", (1,))
    assert adapter.dump_json(Kept("a", (1,))) == b'{"name":"a","parts":[1]}'


def test_it_weighs_less() -> None:
    def weight(known: dict[str, type[Any]]) -> int:
        own = [vars(each).values() for each in known.values()]
        codes = {value.__code__ for values in own for value in values if hasattr(value, "__code__")}
        return sum(map(sys.getsizeof, codes))

    assert weight(_classes(dataclass)) < 0.7 * weight(_classes(dataclasses.dataclass))


def test_a_class_without_words_is_not_asked_for_its_signature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("inspect.signature")  # each leaves a copy of sys.modules behind

    @dataclass(frozen=True, slots=True)
    class Wordless:
        name: str

    assert Wordless.__doc__ == "Wordless"
    assert Wordless("a").name == "a"
