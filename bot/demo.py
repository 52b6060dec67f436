"""`kortex demo`: a whole Kortex on this machine. The workspace is local, everything else is real.

The bot connects to the local workspace exactly as to Slack; only tokens and base URL differ.
"""

import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from pathlib import Path

from aiohttp import web

from adapters.errors import AdapterError
from adapters.llm.port import Provider
from adapters.observe.simulator.topology import SERVICES
from bot import commands, logs
from bot.app import Base, open_redactor
from bot.service import Service, serving
from bot.settings.model import Settings
from bot.settings.reading import environment, parse
from bot.web.demo_control_plane import create_control_plane
from bot.web.demo_on_call import ROTA_PATH, create_on_call
from bot.workspace.app import serving as workspace_serving
from bot.workspace.errors import CannotDoThat
from bot.workspace.providers import ProviderOption
from bot.workspace.state import Workspace

TRIAGE_PACE_S = 0.03  # a word every 30 ms reads like a model that answers quickly
# What runs in the shop before anybody rolls back: product to (running, previous).
_RUNNING = {"checkout": ("v2.4.0", "v2.3.7")}
_ON_CALL = ("mira@example.com", "jonas@example.com")
_OFFERED = ("triage", "anthropic", "openai", "ollama")
_LABELS = {
    "triage": "Triage (no model)",
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "ollama": "Ollama (local)",
}


def demo(port: int) -> int:
    """Serve the demo until stopped. Its data lives in a temporary folder and goes with it."""
    return commands.guarded(lambda: _demo(port))


def demo_ask(question: str, channel: str, *, as_json: bool) -> int:
    """One question against a recorded incident, headless."""

    async def work() -> int:
        with tempfile.TemporaryDirectory(prefix="kortex-") as folder:
            token, read_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
            async with _local(_control_plane(token, read_token)) as plane:
                settings = demo_settings(Path(folder), _plane_values(plane, token, read_token))
                logs.configure(open_redactor(settings), level="ERROR")
                return await commands.ask_with(settings, question, channel, as_json=as_json)

    return commands.guarded(work)


def demo_settings(folder: Path, values: Mapping[str, str] | None = None) -> Settings:
    """`demo.toml` filled in. `values` are the addresses and tokens of the local servers."""
    text = resources.files("bot").joinpath("demo.toml").read_text(encoding="utf-8")
    known = {
        "KORTEX_DEMO_DIRECTORY": str(folder),
        "KORTEX_DEMO_CONTROL_PLANE": "http://127.0.0.1:9",
        "KORTEX_DEMO_ON_CALL": f"http://127.0.0.1:9{ROTA_PATH}",
        "KORTEX_DEMO_AUDIT_KEY": secrets.token_hex(32),
        **(values or {}),
    }
    return parse(text, "demo.toml", {**environment(), **known})


async def _demo(port: int) -> int:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kortex-"))
        print("Kortex is starting ...", flush=True)
        url = await stack.enter_async_context(demo_running(Path(folder), port))
        print(
            f'\n  Open {url}\n\n  Ask there: "@kortex why is checkout slow?"   Stop with Ctrl-C.\n',
            flush=True,
        )
        await commands.stop_asked()
        print("stopping ...")
    return commands.OK


@asynccontextmanager
async def demo_running(
    folder: Path, port: int, *, pace_s: float = TRIAGE_PACE_S
) -> AsyncIterator[str]:
    """The page's URL while everything runs. A port that is taken is replaced by a free one."""
    workspace = Workspace()
    choice = DemoProviders()
    token, read_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(_page(workspace, port, choice))
        plane = await stack.enter_async_context(_local(_control_plane(token, read_token)))
        rota = await stack.enter_async_context(_local(create_on_call(token, _ON_CALL)))
        settings = demo_settings(
            folder,
            {
                "KORTEX_DEMO_BOT_TOKEN": workspace.bot_token,
                "KORTEX_DEMO_APP_TOKEN": workspace.app_token,
                "KORTEX_DEMO_SIGNING_SECRET": workspace.signing_secret,
                "KORTEX_DEMO_API_BASE_URL": f"{origin}/api/",
                **_plane_values(plane, token, read_token),
                "KORTEX_DEMO_ON_CALL": f"{rota}{ROTA_PATH}",
            },
        )
        logs.configure(open_redactor(settings), level="ERROR")
        service: Service = await stack.enter_async_context(serving(settings, triage_pace_s=pace_s))
        choice.connect(service.base)
        yield origin


@asynccontextmanager
async def _page(workspace: Workspace, port: int, choice: "DemoProviders") -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        try:
            origin = await stack.enter_async_context(
                workspace_serving(workspace, port=port, providers=choice)
            )
        except OSError:
            origin = await stack.enter_async_context(
                workspace_serving(workspace, port=0, providers=choice)
            )
        yield origin


def _plane_values(url: str, token: str, read_token: str) -> Mapping[str, str]:
    return {
        "KORTEX_DEMO_CONTROL_PLANE": url,
        "KORTEX_DEMO_CONTROL_PLANE_TOKEN": token,
        "KORTEX_DEMO_CONTROL_PLANE_READ_TOKEN": read_token,
    }


def _control_plane(token: str, read_token: str) -> web.Application:
    hosts = {s.name: [s.host(number) for number in range(s.hosts)] for s in SERVICES}
    return create_control_plane(token, _RUNNING, read_token=read_token, hosts=hosts)


@asynccontextmanager
async def _local(app: web.Application) -> AsyncIterator[str]:
    """Serve it on a free loopback port."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class DemoProviders:
    """The page's provider picker: whichever is chosen is asked first, triage after it."""

    def __init__(self) -> None:
        self._base: Base | None = None
        self.chosen = "triage"

    def connect(self, base: Base) -> None:
        """The running bot."""
        self._base = base

    async def options(self) -> Sequence[ProviderOption]:
        """What could be chosen, and why not."""
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
    """Why it cannot be asked now. A local server is asked for its models."""
    if provider.name != "ollama" or provider.unavailable_reason:
        return provider.unavailable_reason
    try:
        models = await provider.models()
    except AdapterError:
        return "no Ollama answers on this machine"
    return None if models else "Ollama has no model; try `ollama pull qwen3`"
