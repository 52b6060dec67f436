"""The state of every provider, for `/kortex providers`, the HTTP API and the command line."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

from adapters.llm.port import Provider
from adapters.llm.triage.provider import NAME as TRIAGE
from bot.chat.circuits import Circuit, CircuitState
from bot.chat.rounds import Rounds
from bot.domain.provider_status import ProviderStatus


def provider_report(
    providers: Mapping[str, Provider], rounds: Rounds, models: Mapping[str, str]
) -> Callable[[], Awaitable[Sequence[ProviderStatus]]]:
    """A report of the current state. `models` names the configured model of each provider."""

    async def report() -> Sequence[ProviderStatus]:
        order = {provider.name: turn for turn, provider in enumerate(rounds.providers, start=1)}
        return [
            _status(name, provider, rounds.circuit(name), order.get(name, 0), models.get(name, ""))
            for name, provider in providers.items()
        ]

    return report


def _status(
    name: str, provider: Provider, circuit: Circuit, turn: int, model: str
) -> ProviderStatus:
    wait_s = math.ceil(circuit.wait_s)
    alone = circuit.pause if circuit.state is CircuitState.OPEN else ""
    reason = provider.unavailable_reason or alone
    return ProviderStatus(
        name=name,
        available=not reason,
        reason=reason,
        turn=turn,
        model=model,
        context_tokens=provider.max_context_tokens,
        native_tools=provider.supports_tools,
        local=provider.is_local,
        circuit=circuit.state.value,
        wait_s=wait_s,
        failures=circuit.failures,
        answered=circuit.has_answered or name == TRIAGE,
    )
