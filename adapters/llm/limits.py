"""How much one answer may hold. Beyond it there is no answer, only somebody's memory and time."""

from typing import Final

from tools.admission import MAX_ARGUMENT_CHARS as _TAKEN

# The largest outputs sold are 128k tokens: some 600 KB of text, in events of 150 to 350 bytes each.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
MAX_TEXT_CHARS: Final = 1024 * 1024
# What is kept beside the text: thinking, signatures, blocks.
MAX_KEPT_CHARS: Final = 2 * 1024 * 1024
MAX_WHOLE_BYTES: Final = 8 * 1024 * 1024  # of an answer that is not streamed
MAX_CALLS: Final = 128  # as many tools as OpenAI and Nirmata let a request have
# One more than a tool takes: what is longer is refused there, and the model is told.
MAX_ARGUMENT_CHARS: Final = _TAKEN + 1
MAX_NAME_CHARS: Final = 128  # Anthropic's bound; of tools, models and ids
# Kept alive by pings, a round takes no longer; a reasoning model may think for minutes.
ROUND_LIMIT_S: Final = 600.0


def round_limit_s(timeout_s: float) -> float:
    """The longest a round may take with the configured silence of a provider.

    Whoever sets a long one has a slow model: once for its first word, once more for the answer.
    """
    return max(ROUND_LIMIT_S, 2 * timeout_s)


class AnswerTooLarge(ValueError):
    """An answer went past one of these limits; says which."""
