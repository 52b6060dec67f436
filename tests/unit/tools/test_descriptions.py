"""A tool's description names no other tool: its toolset may not have it."""

import re

import orjson
import pytest

from tests.fakes.capabilities import call_context
from tools.attached import AttachedFile
from tools.catalog import ToolCatalog
from tools.core.all import built_in_toolsets, core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy

TOOLSETS = built_in_toolsets()
EVERY_TOOL = {name for names in TOOLSETS.values() for name in names}
CONNECTIONS = frozenset({"platform:everybody"})
TOOLS = core_tools(CursorSigner(b"k" * 32))


@pytest.mark.parametrize("purpose", sorted(TOOLSETS))
def test_a_description_names_no_tool_but_its_own(purpose: str) -> None:
    policy = ToolPolicy(toolsets=TOOLSETS, granted_connections=CONNECTIONS)
    asking = call_context(purpose=purpose, connection_ids=CONNECTIONS, files=(AttachedFile("F1"),))
    shown = ToolCatalog(TOOLS, policy).visible(asking)
    texts = {d.name: d.description + orjson.dumps(d.input_schema).decode() for d in shown}
    words = {name: set(re.findall(r"[a-z0-9_]+", text)) for name, text in texts.items()}
    named = {
        name: [
            other
            for other in EVERY_TOOL - {name}
            if {other, other.removeprefix("core__")} & words[name]
        ]
        for name in words
    }

    assert set(named) == set(TOOLSETS[purpose])
    assert named == {name: [] for name in named}
