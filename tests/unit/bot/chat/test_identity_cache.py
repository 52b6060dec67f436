"""What was made of a value is made once while it is the same, and of no other."""

from bot.chat.identity_cache import MOST, IdentityCache


def test_it_is_made_once_for_the_same_and_again_for_its_equal() -> None:
    made: list[tuple[str, ...]] = []

    def make(value: tuple[str, ...]) -> int:
        made.append(value)
        return len(made)

    of = IdentityCache(make)
    one, equal = ("a", "b"), (*"ab",)

    assert [of(one), of(one), of(equal), of(one)] == [1, 1, 2, 1]


def test_values_that_are_gone_leave_nothing_to_others_and_no_more_than_so_many_are_kept() -> None:
    of: IdentityCache[tuple[int, ...], int] = IdentityCache(sum)

    assert all(of((number, 1)) == number + 1 for number in range(10 * MOST))
    assert len(of._made) <= MOST
