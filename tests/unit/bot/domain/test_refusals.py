"""The messages about a limit: only a spent budget is called spent."""

import pytest

from bot.domain.budget import Limit, Refusal, refusal_words

MONEY = {"most": 2_000_000, "wanted": 300_000}
TOKENS = {"most": 200_000, "wanted": 30_000}


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (
            Refusal(Limit.DAILY, spent=2_000_000, held=0, **MONEY),
            "today's budget ($2.00) is spent; a new budget starts at 00:00 UTC",
        ),
        (
            Refusal(Limit.DAILY, spent=1_000_000, held=900_000, **MONEY),
            "$1.00 of today's budget ($2.00) is spent, and $0.9000 is reserved for running "
            "answers; ask again when they have ended",
        ),
        (
            Refusal(Limit.CHANNEL, spent=1_900_000, held=0, **MONEY),
            "$1.90 of this channel's budget for today ($2.00) is spent, and this round may cost "
            "$0.3000; a new budget starts at 00:00 UTC",
        ),
        (
            Refusal(Limit.SESSION, spent=100_000, held=90_000, **TOKENS),
            "100,000 tokens of this thread's allowance (200,000 tokens) is spent, and 90,000 tokens "
            "is reserved for running answers; ask again when they have ended",
        ),
        (
            Refusal(Limit.SESSION, spent=200_001, held=0, **TOKENS),
            "this thread's allowance (200,000 tokens) is spent; a new thread has its own",
        ),
        (
            Refusal(Limit.USER, most=10, spent=10, held=0, wanted=1),
            "you asked 10 questions this hour, the limit for one person; ask again at the next full hour",
        ),
        (
            Refusal(Limit.USER, most=1, spent=1, held=0, wanted=1),
            "you asked 1 question this hour, the limit for one person; ask again at the next full hour",
        ),
    ],
)
def test_each_refusal_has_its_message(refusal: Refusal, words: str) -> None:
    assert refusal_words(refusal) == words


@pytest.mark.parametrize("limit", [limit for limit in Limit if limit is not Limit.USER])
@pytest.mark.parametrize("spent", range(0, 101, 10))
@pytest.mark.parametrize("held", range(0, 101, 20))
def test_only_a_spent_budget_is_called_spent(limit: Limit, spent: int, held: int) -> None:
    words = refusal_words(Refusal(limit, most=100, spent=spent, held=held, wanted=1))

    assert (") is spent;" in words) == (spent >= 100)
