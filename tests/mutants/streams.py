"""Slack's own streams: what keeps a word of an answer from being lost or said twice."""

from tests.mutants.mutant import Mutant

_NATIVE = "tests/scenario/test_native_streams.py::"

STREAM_MUTANTS = (
    Mutant(
        "an append that Slack perhaps took is sent again",
        "bot/slack/views/native_answer.py",
        "        self.growth = None\n        return False\n",
        "        return False\n",
        (
            f"{_NATIVE}test_a_call_with_an_unknown_outcome_is_neither_lost_nor_repeated"
            "[True-chat.appendStream]",
        ),
    ),
    Mutant(
        "a message that grows is not known again by who takes over",
        "bot/slack/views/answer_messages.py",
        "known = found.grown | found.marked",
        "known = found.marked",
        (f"{_NATIVE}test_a_replica_killed_before_it_stored_the_message_causes_no_duplicate",),
    ),
    Mutant(
        "the end of an answer is appended to what it does not begin with",
        "bot/slack/views/native_answer.py",
        "if part is None or not text.startswith(growth.sent):",
        "if part is None:",
        (f"{_NATIVE}test_a_claim_mark_is_added_by_an_edit_after_the_end",),
    ),
)
