"""Per-role tools in the product as it is put together: who asks decides what a turn may use."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.app.build import Base, build_base
from bot.app.conversation import Conversation, build_conversation
from bot.app.platforms import Directory
from bot.app.stores import open_redactor
from bot.cli.headless import HeadlessSurface, NamedByUser, NeverStopped
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from tests.fakes.capabilities import call_context, fake_capabilities
from tests.fakes.tools import FakeTool, contract
from tools.capabilities import CallContext
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

CLOCK, HISTORY = "core__get_current_time", "core__get_incident_history"


HERE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))


@dataclass
class Product:
    base: Base
    talk: Conversation

    async def context(self, user: str) -> CallContext:
        found = await self.talk.roles_of(HERE, Person(TeamId("T1"), UserId(user)))
        return replace(call_context(), actor=user, roles=found.held)


async def _same(user: UserId) -> str:
    return user


@pytest.fixture(scope="module", autouse=True)
def rules_are_read() -> None:
    """Redaction's rules are read once a process, before the loop is watched."""
    open_redactor(Settings())


@pytest.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    settings = Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
            "roles": {"responder": {"users": ["U1"]}},
            "policy": {"roles": {"responder": {"tools": ["core__*"]}, "*": {"tools": [CLOCK]}}},
        }
    )
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack)
        directory = Directory(_same, NamedByPlace(), NamedByUser({"responder": ["U1"]}))
        surface = HeadlessSurface(lambda _: None)
        yield Product(base, build_conversation(base, surface, NeverStopped(), directory))


@pytest.mark.parametrize(
    ("user", "code"), [("U1", None), ("U2", ToolErrorCode.AUTHZ_DENIED)], ids=["held", "not held"]
)
async def test_the_catalog_hides_and_the_runner_denies_tools_outside_the_roles(
    product: Product, user: str, code: ToolErrorCode | None
) -> None:
    context = await product.context(user)
    box = product.talk.toolboxes.choose(context)
    shown = {each.name for each in box.catalog.visible(context)}
    outcome = await box.runner.run("c1", HISTORY, '{"query":"errors"}', context, lambda _: None)
    assert CLOCK in shown
    assert (HISTORY in shown) is (code is None)
    assert outcome.record.error_code is code


async def test_a_tool_s_bug_is_counted(product: Product) -> None:
    def breaks(_: object) -> object:
        raise ZeroDivisionError

    policy = ToolPolicy(toolsets={"investigate": ("core__*",)})
    box = product.talk.toolboxes._make(
        [FakeTool(contract(), answer=breaks)], policy, fake_capabilities()
    )
    await box.runner.run("c1", "core__echo", '{"text":"x"}', call_context(), lambda _: None)
    bugs = product.base.metrics.registry.get_sample_value(
        "kortex_tool_bugs_total", {"tool": "core__echo"}
    )
    assert bugs == 1
