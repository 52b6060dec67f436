"""A manifest that cannot be used is refused with its file and line; nothing of it is guessed."""

from pathlib import Path

import pytest

from adapters.plugins.manifest import checked, read_manifest
from adapters.plugins.tool import contract_of
from adapters.plugins.yaml_source import MAX_BYTES, ManifestInvalid, parse_yaml
from tools.schema import input_schema

GOOD = """\
name: jira_search
description: Tickets that match a JQL query. Use to find reports of the same failure.
parameters:
  query:
    type: string
    description: "JQL"
  limit:
    type: integer
    minimum: 1
    maximum: 20
    default: 10
endpoint:
  method: POST
  read_only: true
  url: http://bridge.internal:8080/jira/search
  networks: [10.0.0.0/8]
auth:
  type: bearer
  token: "${JIRA_BRIDGE_TOKEN}"
allowed_sessions: [production, "incident-*"]
timeout: 10s
"""
REFUSED = {
    "no YAML": ("name: jira_search", "name: [", 3, "not valid YAML"),
    "no mapping": (GOOD, "just words", 1, "valid dictionary"),
    "an unknown key": ("timeout: 10s", "retries: 3", 21, "unknown key"),
    "a key set twice": ("timeout: 10s", "timeout: 10s\ntimeout: 9s", 22, "set twice"),
    "no description": ("description: Tickets", "describe: Tickets", 1, "description is missing"),
    "a name with capitals": ("name: jira", "name: Jira", 1, "name"),
    "a name with our separator": ("name: jira_", "name: jira__", 1, "name"),
    "a name too long": ("name: jira_search", f"name: {'a' * 57}", 1, "at most 56"),
    "an alias": ("[production,", "&a [production,", 20, "aliases"),
    "an object": ("name: jira_search", "name: !!python/object:os.system x", 1, "not valid YAML"),
    "a POST that may write": ("  read_only: true\n", "", 12, "only reads"),
    "a PUT": ("method: POST", "method: PUT", 13, "GET"),
    "another scheme": ("http://bridge", "file://bridge", 15, "http://"),
    "an old scheme": ("http://bridge", "gopher://bridge", 15, "http://"),
    "a user in the URL": ("http://bridge", "http://public@bridge", 15, "user name"),
    "a parameter as host": ("http://bridge", "http://{query}", 15, "only path and query"),
    "a port that is none": (":8080", ":80800", 15, "[Pp]ort"),
    "an unknown hole": ("/jira/search", "/jira/{key}", 15, "no parameter is called key"),
    "every network": ("10.0.0.0/8", "0.0.0.0/0", 16, "wider than"),
    "a token in the file": ("${JIRA_BRIDGE_TOKEN}", "s3cr3t", 19, "from the environment"),
    "no session": ('[production, "incident-*"]', "[]", 20, "at least 1"),
    "a timeout of hours": ("timeout: 10s", "timeout: 6m", 21, "at most 300s"),
    "a timeout without a unit": ("timeout: 10s", "timeout: 10", 21, "duration"),
    "a default out of bounds": ("default: 10", "default: 100", 11, "less than or equal to 20"),
    "a reserved parameter": ("  query:", "  json:", 4, "reserved"),
    "a connection": ("  query:", "  connection_id:", 1, "connections come from the context"),
    "an output path that is none": ("timeout: 10s", "fields: ['a..b']", 1, "malformed"),
}


def contract(text: str) -> object:
    return contract_of(checked(parse_yaml(text, "jira.yaml")))


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_is_reported_with_file_and_line(case: str) -> None:
    old, new, line, words = REFUSED[case]
    assert old in GOOD

    with pytest.raises(ManifestInvalid, match=words) as refused:
        contract(GOOD.replace(old, new, 1))

    assert refused.value.file == "jira.yaml"
    assert str(refused.value).startswith(f"jira.yaml:{line}: ")


def test_a_manifest_becomes_the_schema_that_a_model_sees() -> None:
    made = contract_of(checked(parse_yaml(GOOD, "jira.yaml")))

    assert made.id == "plugin__jira_search"
    assert (made.timeouts.default_s, made.timeouts.ceiling_s) == (10.0, 300.0)
    assert input_schema(made.input) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "JQL"},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 20},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n",
        "[" * 20_000,
        "x: " + "y" * MAX_BYTES,
    ],
    ids=["laughs", "depth", "size"],
)
def test_a_yaml_bomb_is_stopped_at_a_limit(bomb: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(bomb)

    with pytest.raises(ManifestInvalid, match=r"aliases|nested too deep|larger than"):
        read_manifest(file)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "binary.yaml"
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ManifestInvalid, match="UTF-8"):
        read_manifest(file)


@pytest.mark.parametrize(
    ("value", "words"), [("", "is not set"), ("a\r\nX-Admin: 1", "cannot be sent")]
)
def test_a_credential_that_cannot_be_sent_is_refused(value: str, words: str) -> None:
    read = checked(parse_yaml(GOOD, "jira.yaml"))

    with pytest.raises(ManifestInvalid, match=words):
        read.headers({"JIRA_BRIDGE_TOKEN": value})


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Cookie"])
def test_a_header_of_the_request_itself_cannot_be_set(name: str) -> None:
    auth = f'type: header\n  name: {name}\n  value: "${{X}}"'
    text = GOOD.replace('type: bearer\n  token: "${JIRA_BRIDGE_TOKEN}"', auth)

    with pytest.raises(ManifestInvalid, match="cannot be set"):
        contract(text)
