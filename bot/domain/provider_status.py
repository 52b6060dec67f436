"""A model backend as an operator sees it. Values only."""

from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """One provider now. `reason` says why it is not used; empty when it is.

    `turn` is its position in the order (1 is the default), 0 if it is not in it. `circuit` is
    "closed" (used), "open" (not used for `wait_s`) or "trying" (the next round is a trial);
    `failures` counts those in a row. `answered`: since the start, so that its key and model are
    known to work; a configuration alone proves nothing.
    """

    name: str
    available: bool
    reason: str = ""
    turn: int = 0
    model: str = ""
    context_tokens: int = 0
    native_tools: bool = True
    local: bool = False
    circuit: str = "closed"
    wait_s: int = 0
    failures: int = 0
    answered: bool = False

    def as_json(self) -> dict[str, JsonValue]:
        """The object that the HTTP API and `--json` answer with."""
        return {
            "name": self.name,
            "available": self.available,
            "reason": self.reason,
            "turn": self.turn,
            "model": self.model,
            "context_tokens": self.context_tokens,
            "tools": self.native_tools,
            "local": self.local,
            "circuit": self.circuit,
            "retry_in_s": self.wait_s,
            "failures": self.failures,
            "answered": self.answered,
        }

    def as_words(self, *, live: bool = True) -> str:
        """For people, in one line without the name; without `live` nothing is known of its answers."""
        if not self.available:
            return f"not available, {self.reason}"
        if not self.turn:
            return "configured, but not in default_provider or fallback_providers"
        asked = f"asked {_ORDINALS.get(self.turn, f'{self.turn}th')}"
        trying = ", on trial after failures" if self.circuit == "trying" else ""
        unheard = "configured, not used yet" if live else "configured"
        state = "ready" if self.answered else unheard
        return f"{state}, {asked}" + (f", {self.model}" if self.model else "") + trying


_ORDINALS = {1: "first", 2: "second", 3: "third"}
