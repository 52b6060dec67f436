"""Which request fields a Claude model takes; an unknown model is sent the minimum."""

from typing import Final

# temperature, top_p and top_k are a 400 on opus-4-7 and later, on the 5 family and on fable and
# mythos, so they are sent only to what is known to take them.
_SAMPLING: Final = (
    "claude-3",
    "claude-haiku-4",
    "claude-sonnet-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2025",
    "claude-opus-4-5",
    "claude-opus-4-6",
)


def takes_sampling(model: str) -> bool:
    """Whether the model accepts `temperature`."""
    return model.startswith(_SAMPLING)
