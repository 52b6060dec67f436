"""MCP servers that are trusted: the change of the client, and the tests that must fail."""

from tests.mutants.mutant import Mutant

_ARGUMENTS = "tests/unit/adapters/mcp/test_arguments.py::"
_CONTRACT = "tests/contract/test_mcp.py::"
_DEFINITION = "tests/unit/adapters/mcp/test_definition.py::"
_REPORT = "tests/unit/bot/app/test_mcp_servers.py::"
_SUPERVISOR = "tests/unit/adapters/mcp/test_supervisor.py::"

MCP_MUTANTS = (
    Mutant(
        "mcp: what was accepted is not compared with what is announced",
        "adapters/mcp/definition.py",
        "if entry.sha256 != definition.sha256():",
        "if False:",
        (
            f"{_DEFINITION}test_a_tool_that_changed_is_off",
            f"{_SUPERVISOR}test_a_changed_tool_goes_off_and_comes_back",
        ),
    ),
    Mutant(
        "mcp: the hash leaves out what properties say",
        "adapters/mcp/definition.py",
        '"inputSchema": self.schema}',
        '"inputSchema": sorted(self.schema)}',
        (f"{_DEFINITION}test_a_tool_that_changed_is_off",),
    ),
    Mutant(
        "mcp: a tool without an entry is on",
        "adapters/mcp/definition.py",
        "else (ToolState.NEW, _NO_ENTRY)",
        "else (ToolState.ON, _NO_ENTRY)",
        (f"{_DEFINITION}test_a_new_tool_is_off",),
    ),
    Mutant(
        "mcp: what looks like a change is on by its entry alone",
        "adapters/mcp/definition.py",
        "if writes and not entry.because:",
        "if False:",
        (
            "tests/unit/adapters/mcp/test_effect.py::test_a_suspected_write_is_refused_until_the_operator_gives_a_reason",
        ),
    ),
    Mutant(
        "mcp: a tool that changes something is on",
        "adapters/mcp/definition.py",
        "if not entry.reads:",
        "if False:",
        (f"{_DEFINITION}test_a_tool_with_an_effect_is_never_on",),
    ),
    Mutant(
        "mcp: of two tools of one id the last one wins",
        "adapters/mcp/supervisor.py",
        "if ids.count(own := tool_id(self.spec.name, definition.name)) > 1:",
        "if ids.count(own := tool_id(self.spec.name, definition.name)) > 2:",
        (f"{_SUPERVISOR}test_two_tools_of_one_id_are_both_off",),
    ),
    Mutant(
        "mcp: references multiply without end",
        "adapters/mcp/arguments.py",
        "if depth > MAX_DEPTH or self._nodes > MAX_NODES:",
        "if depth > MAX_DEPTH + 1:",
        (f"{_ARGUMENTS}test_a_schema_that_some_provider_refuses_is_refused",),
    ),
    Mutant(
        "mcp: a program gets all of Kortex's environment",
        "adapters/mcp/stdio.py",
        "env=dict(env),",
        "env={**os.environ, **env},",
        (f"{_CONTRACT}test_a_child_process_is_listed_called_and_ended",),
    ),
    Mutant(
        "mcp: what a program started outlives it",
        "adapters/mcp/stdio.py",
        "self._signal(signal.SIGKILL)  # its own children too, which may outlive it",
        "pass",
        (f"{_CONTRACT}test_child_processes_of_a_server_end_with_it",),
    ),
    Mutant(
        "mcp: a redirect is followed",
        "adapters/mcp/http_transport.py",
        "if 300 <= status < 400:",
        "if False:",
        (f"{_CONTRACT}test_an_unusable_answer_is_reported",),
    ),
    Mutant(
        "mcp: a past that somebody made up is shown",
        "adapters/mcp/accepted_definitions.py",
        "return found if found.sha256() == sha256 else None",
        "return found",
        (f"{_REPORT}test_a_manipulated_file_shows_no_false_history",),
    ),
)
