"""Whether a tool reads or writes is guessed, and a guess only narrows."""

import pytest
from pydantic import JsonValue

from adapters.mcp.definition import Accepted, Definition, ToolState, entry_line, judged
from adapters.mcp.effect import Guess, SeemingEffect, seeming_effect

SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {}}


def guessed(name: str, description: str = "", *parameters: str) -> Guess:
    asked: dict[str, JsonValue] = {each: {} for each in parameters}
    schema: dict[str, JsonValue] = {"type": "object", "properties": asked}
    return seeming_effect(name, description, schema, says_it_writes=False).guess


# Names as public servers of GitHub, Kubernetes, Grafana, Alertmanager, PagerDuty, Sentry and Slack have them.
@pytest.mark.parametrize(
    "name",
    [
        "createsilence", "deletesilence", "create_issue", "deleteSilence", "kubectl-scale", "git_add",
        "git_commit", "git_reset", "helm.upgrade", "push_files", "merge_pull_request", "run_query_job",
        "exec_in_pod", "restartDeployment", "UpdateDashboard", "patch_resource", "chat_post_message",
        "acknowledge_incident", "get_or_create_issue", "list_and_delete_pods", "set_feature_flag",
        "rollbackRelease", "writeFile", "send_notification", "cordon_node", "snoozeAlert",
        "ack_alert", "evictPod", "truncate_table", "toggle_flag", "requeue_dlq", "escalate", "wipe",
    ],
)  # fmt: skip
def test_a_name_with_a_writing_verb_is_a_write(name: str) -> None:
    assert guessed(name) is Guess.WRITES


@pytest.mark.parametrize(
    "name",
    [
        "get_updates", "list_deployments", "search_issues", "git_status", "git_log", "git_diff",
        "query_prometheus", "describe_pod", "read_file", "convert_time", "get_current_time",
        "fetchCommits", "find_error_pattern_logs", "get_change_set", "listReleases", "show_runs",
        "count_open_incidents", "loki.query_range", "get_settings",
    ],
)  # fmt: skip
def test_a_name_with_a_reading_verb_is_a_read(name: str) -> None:
    assert guessed(name) is Guess.READS


@pytest.mark.parametrize(
    "name",
    [
        "resolve_incident",
        "format_disk",
        "deployments",
        "settings",
        "time",
        "frobnicate",
        "x" * 64,
        "_",
        "1",
    ],
)
def test_an_unclear_name_is_left_to_the_operator(name: str) -> None:
    assert guessed(name) is Guess.UNCLEAR
    assert entry_line(Definition(name, "", SCHEMA)).endswith('effect = "" }')


@pytest.mark.parametrize(
    ("description", "parameters"),
    [
        ("Creates a silence.", ()),
        ("Delete the dashboard", ()),
        ("Applies a manifest", ()),
        ("Manages pods", ("dryRun",)),
        ("Looks after silences", ("id", "force")),
    ],
)
def test_a_description_or_a_parameter_can_reveal_a_change(
    description: str, parameters: tuple[str, ...]
) -> None:
    assert guessed("silences", description, *parameters) is Guess.WRITES
    assert guessed("get_silences", description, *parameters) is Guess.WRITES


@pytest.mark.parametrize("description", ["Open tickets.", "Updates of an incident", "Run history"])
def test_a_leading_noun_in_a_description_reveals_nothing(description: str) -> None:
    assert guessed("get_tickets", description) is Guess.READS


def test_a_suspected_write_is_refused_until_the_operator_gives_a_reason() -> None:
    tool = Definition("createsilence", "", SCHEMA)
    plain, reasoned = Accepted(tool.sha256(), reads=True), Accepted(tool.sha256(), True, "a draft")

    (new,) = judged([tool], {})
    (refused,) = judged([tool], {tool.name: plain})
    (on,) = judged([tool], {tool.name: reasoned})

    assert [new.state, refused.state, on.state] == [
        ToolState.REFUSED, ToolState.REFUSED, ToolState.ON,
    ]  # fmt: skip
    assert "its name says 'create'" in new.reason
    assert "because" in refused.reason


def test_a_server_that_declares_a_write_overrides_the_operator() -> None:
    tool = Definition("search", "Find tickets.", SCHEMA, says_it_writes=True)

    (found,) = judged([tool], {"search": Accepted(tool.sha256(), True, "I know it reads")})

    assert found.state is ToolState.REFUSED


def test_a_servers_declaration_is_not_part_of_the_hash() -> None:
    assert Definition("a", "", SCHEMA).sha256() == Definition("a", "", SCHEMA, True).sha256()


def test_a_guess_gives_its_reason() -> None:
    found = seeming_effect("a", "", {}, says_it_writes=True)
    assert found == SeemingEffect(Guess.WRITES, "its server says that it changes something")
