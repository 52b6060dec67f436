"""The page of `kortex demo` and all that runs behind it.

The bot connects to the local workspace exactly as to Slack; only tokens and base URL differ.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pydantic import SecretStr, ValidationError

from adapters.errors import AdapterError
from adapters.llm.port import Provider
from bot.app.backend_selection import Playback
from bot.app.build import Base
from bot.app.start import Service, serving
from bot.app.stores import open_redactor
from bot.demo.setup import (
    ROTA_PATH,
    SCRIPT,
    alert_script,
    create_on_call,
    demo_control_plane,
    demo_incidents,
    demo_settings,
    demo_text,
    local,
    plane_values,
    write_private,
)
from bot.demo.workspace.app import serving as workspace_serving
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.person_api import ProviderOption
from bot.demo.workspace.state import Workspace
from bot.settings.database import DatabaseSettings
from bot.settings.environment import environment
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.telemetry import logs
from bot.web.listener import bind_problem

TRIAGE_PACE_S = 0.03  # a word every 30 ms reads like a model that answers quickly
USUAL_PORT = 8420
LOOPBACK = "127.0.0.1"
# Of a demo that outlives its process, as deploy/compose.yaml has one.
DATABASE_URL = "KORTEX_DEMO_DATABASE_URL"
AUDIT_KEY = "KORTEX_DEMO_AUDIT_KEY"
_ON_CALL = ("mira@example.com", "jonas@example.com")
_OFFERED = ("triage", "anthropic", "openai", "ollama")
_LABELS = {
    "triage": "Triage (no model)",
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "ollama": "Ollama (local)",
}


@asynccontextmanager
async def demo_running(
    folder: Path, port: int | None, host: str = LOOPBACK, *, pace_s: float = TRIAGE_PACE_S
) -> AsyncIterator[str]:
    """The page's URL while everything runs. Without a port the usual one, or a free one.

    `folder` gets the database (unless KORTEX_DEMO_DATABASE_URL names another), `kortex.toml` with
    the key of its audit log, and a script that fires an alert. For any `host`, the page answers to the
    names of this machine's loopback alone.

    Raises ConfigurationError when the port that was asked for cannot be had.
    """
    workspace = Workspace()
    choice, incidents = DemoProviders(), demo_incidents()
    token, read_token, alert_token = (secrets.token_urlsafe(24) for _ in range(3))
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(page_serving(workspace, host, port, choice))
        plane = await stack.enter_async_context(
            local(demo_control_plane(token, read_token, incidents))
        )
        rota = await stack.enter_async_context(local(create_on_call(token, _ON_CALL)))
        values = {
            "KORTEX_DEMO_BOT_TOKEN": workspace.bot_token,
            "KORTEX_DEMO_APP_TOKEN": workspace.app_token,
            "KORTEX_DEMO_SIGNING_SECRET": workspace.signing_secret,
            "KORTEX_DEMO_API_BASE_URL": f"{origin}/api/",
            **plane_values(plane, token, read_token),
            "KORTEX_DEMO_ON_CALL": f"{rota}{ROTA_PATH}",
            "KORTEX_DEMO_AUDIT_KEY": environment().get(AUDIT_KEY) or secrets.token_hex(32),
            "KORTEX_DEMO_ALERT_TOKEN": alert_token,
        }
        settings = await _on_own_database(demo_settings(folder, values))
        await asyncio.to_thread(write_private, folder / "kortex.toml", demo_text(values))
        logs.configure(open_redactor(settings), level="ERROR")
        service: Service = await stack.enter_async_context(
            serving(settings, playback=Playback(pace_s, incidents))
        )
        choice.connect(service.base)
        fires = alert_script(service.http_port, alert_token)
        await asyncio.to_thread(write_private, folder / SCRIPT, fires)
        yield origin


async def _on_own_database(settings: Settings) -> Settings:
    url = environment().get(DATABASE_URL)
    if not url:
        return settings
    try:
        own = DatabaseSettings(url=SecretStr(url))
    except ValidationError as error:
        words = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise ConfigurationError(f"{DATABASE_URL}: {words}") from None
    await schema.migrate(url)
    return settings.model_copy(update={"database": own})


@asynccontextmanager
async def page_serving(
    workspace: Workspace, host: str, port: int | None, choice: "DemoProviders | None" = None
) -> AsyncIterator[str]:
    """The workspace's origin. Raises ConfigurationError when the port that was asked for cannot be had."""
    async with AsyncExitStack() as stack:
        wanted = USUAL_PORT if port is None else port
        try:
            origin = await stack.enter_async_context(
                workspace_serving(workspace, host, wanted, providers=choice)
            )
        except OSError as error:
            if port is not None:
                why = bind_problem(error, host, port)
                raise ConfigurationError(f"--port: {why} (0 is any free one)") from error
            origin = await stack.enter_async_context(
                workspace_serving(workspace, host, 0, providers=choice)
            )
        yield origin


class DemoProviders:
    """The page's provider picker: the chosen provider is asked first, triage after it."""

    def __init__(self) -> None:
        self._base: Base | None = None
        self.chosen = "triage"

    def connect(self, base: Base) -> None:
        self._base = base

    async def options(self) -> Sequence[ProviderOption]:
        providers = self._base.providers if self._base else {}
        return [
            ProviderOption(name, _LABELS[name], reason is None, reason or "", name == self.chosen)
            for name in _OFFERED
            if name in providers
            for reason in [await _reason(providers[name])]
        ]

    async def choose(self, option: str) -> None:
        """From the next question on. Raises CannotDoThat."""
        known = {o.id for o in await self.options() if o.available}
        if self._base is None or option not in known:
            raise CannotDoThat("that provider cannot be asked here")
        providers = self._base.providers
        names = dict.fromkeys([option, "triage"])
        self._base.rounds.ask_in_order([providers[n] for n in names])
        self.chosen = option


async def _reason(provider: Provider) -> str | None:
    if provider.name != "ollama" or provider.unavailable_reason:
        return provider.unavailable_reason
    try:
        models = await provider.models()
    except AdapterError:
        return "no Ollama answers on this machine"
    return None if models else "Ollama has no model; try `ollama pull qwen3`"
