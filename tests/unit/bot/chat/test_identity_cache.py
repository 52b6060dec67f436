"""A derived value is computed once for the same object, and never reused for another."""

from bot.chat.window import MOST, IdentityCache


def test_a_value_is_computed_once_per_object() -> None:
    made: list[tuple[str, ...]] = []

    def make(value: tuple[str, ...]) -> int:
        made.append(value)
        return len(made)

    of = IdentityCache(make)
    one, equal = ("a", "b"), (*"ab",)

    assert [of(one), of(one), of(equal), of(one)] == [1, 1, 2, 1]


def test_freed_values_are_forgotten_and_the_cache_is_limited() -> None:
    of: IdentityCache[tuple[int, ...], int] = IdentityCache(sum)

    assert all(of((number, 1)) == number + 1 for number in range(10 * MOST))
    assert len(of._made) <= MOST
