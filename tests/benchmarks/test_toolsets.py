"""What the tools' names, descriptions and schemas add to every request, by toolset."""

import pytest

from bot.app.rules import TOOLSETS
from bot.reports.tools import toolset_costs
from tests.benchmarks.figures import show
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy

pytestmark = pytest.mark.benchmark


def test_investigate_against_every_tool() -> None:
    """With every backend configured; an upper estimate at 2.4 bytes a token."""
    policy = ToolPolicy(TOOLSETS, granted_connections=frozenset({"platform:any"}))
    costs = {each.name: each for each in toolset_costs(core_tools(CursorSigner(bytes(32))), policy)}
    show("schemas in every request", **{name: each.as_words() for name, each in costs.items()})
    share = costs["investigate"].max_tokens / costs["all"].max_tokens
    show("investigate over all tools", share=f"{share:.2f}")

    assert share < 1
