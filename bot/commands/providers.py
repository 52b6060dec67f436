"""`kortex providers`: the running service's word where it can be had, else the configuration's."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.chat.rounds import Rounds
from bot.commands.live import asked
from bot.domain.provider_status import ProviderStatus
from bot.reports.provider_report import provider_report
from bot.settings.model import Settings
from bot.wiring.backends import asked_in_order, make_providers

PATH = "/api/v1/llm/providers"


@dataclass(frozen=True, slots=True)
class Report:
    """Every provider. `live` False: nobody runs here, so nothing is known of failures."""

    providers: Sequence[ProviderStatus]
    live: bool


class _Row(BaseModel):
    """One provider as the HTTP API tells it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    available: bool
    reason: str
    turn: int
    model: str
    context_tokens: int
    tools: bool
    local: bool
    circuit: str
    retry_in_s: int
    failures: int
    answered: bool = True  # a service of the release before does not say

    def status(self) -> ProviderStatus:
        """As the service meant it."""
        return ProviderStatus(
            name=self.name,
            available=self.available,
            reason=self.reason,
            turn=self.turn,
            model=self.model,
            context_tokens=self.context_tokens,
            native_tools=self.tools,
            local=self.local,
            circuit=self.circuit,
            wait_s=self.retry_in_s,
            failures=self.failures,
            answered=self.answered,
        )


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    providers: list[_Row]


async def report_of(settings: Settings) -> Report:
    """Ask the service of this configuration, if it runs and has an API token.

    Raises ConfigurationError for providers that cannot be made.
    """
    body = await asked(settings.http, PATH)
    live = _live(body) if body is not None else None
    return live or await _configured(settings)


def _live(body: bytes) -> Report | None:
    try:
        rows = _Answer.model_validate_json(body).providers
    except ValidationError:
        return None
    return Report([row.status() for row in rows], live=True)


async def _configured(settings: Settings) -> Report:
    async with AsyncExitStack() as stack:
        providers = make_providers(settings.llm, stack)
        rounds = Rounds(asked_in_order(settings.llm, providers))
        models = {name: own.model for name, own in settings.llm.providers.items()}
        return Report(await provider_report(providers, rounds, models)(), live=False)
