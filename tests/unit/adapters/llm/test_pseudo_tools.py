"""Markers in text become calls; everything else stays text, however it is cut."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.framing import MAX_ARGUMENT_CHARS
from adapters.llm.messages import ToolCall
from adapters.llm.pseudo_tools import MarkerReader, shown_call
from tests.pace import spending

NAMES = frozenset({"kubectl_get", "ping"})


def read(pieces: list[str]) -> tuple[str, list[tuple[str, str]]]:
    reader = MarkerReader(NAMES)
    text = "".join([*(reader.feed(piece) for piece in pieces), reader.close()])
    return text, [(call.name, call.arguments) for call in reader.calls]


@pytest.mark.parametrize(
    ("written", "text", "calls"),
    [
        ("Hello.", "Hello.", []),
        ("a < b << c <<TOOLS and <<TOOL", "a < b << c <<TOOLS and <<TOOL", []),
        ("<<TOOL name=\"ping\" args='{}'>>", "", [("ping", "{}")]),
        ('<<TOOL name="ping">>', "", [("ping", "{}")]),
        ("Look: <<TOOL name='ping' args=\"{}\">> ok", "Look:  ok", [("ping", "{}")]),
        (
            '<<TOOL name="kubectl_get" args=\'{"ns": "o\'brien"}\'>>',
            "",
            [("kubectl_get", '{"ns": "o\'brien"}')],
        ),
        (
            '<<TOOL name="kubectl_get" args=\'{"ns": "a\'>>b"}\'>>',
            "",
            [("kubectl_get", '{"ns": "a\'>>b"}')],
        ),
        (
            '<<TOOL name="ping" args=\'{}\'>>\n<<TOOL name="ping" args=\'{"n": 2}\'>>',
            "\n",
            [("ping", "{}"), ("ping", '{"n": 2}')],
        ),
        (
            "<<TOOL name=\"rm_rf\" args='{}'>>",
            "<<TOOL name=\"rm_rf\" args='{}'>>",
            [],
        ),
        ("<<TOOL name=\"ping\" args='{oops'>>", "", [("ping", "{oops")]),
        ("<<TOOL name=\"ping\" args='{} x'>>", "<<TOOL name=\"ping\" args='{} x'>>", []),
        ('<<TOOL name="ping" args=\'{"a":', '<<TOOL name="ping" args=\'{"a":', []),
    ],
)
def test_text_is_split_into_text_and_calls(
    written: str, text: str, calls: list[tuple[str, str]]
) -> None:
    assert read([written]) == (text, calls)
    assert read(list(written)) == (text, calls)


def test_text_before_a_possible_marker_is_shown_at_once() -> None:
    reader = MarkerReader(NAMES)
    assert reader.feed("The cause is <") == "The cause is "
    assert reader.feed("b> bold") == "<b> bold"


ARGUMENTS = st.dictionaries(st.text(max_size=5), st.text(max_size=8) | st.integers(), max_size=3)
PIECES = st.lists(
    st.one_of(
        st.text("<>TOL '\"name=\n{}", max_size=10),
        st.builds(
            lambda name, arguments: shown_call(ToolCall("", name, json.dumps(arguments))),
            st.sampled_from(["ping", "kubectl_get", "rm_rf"]),
            ARGUMENTS,
        ),
    ),
    max_size=4,
)


@given(PIECES, st.data())
def test_cuts_do_not_matter(pieces: list[str], data: st.DataObject) -> None:
    written = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    edges = [0, *cuts, len(written)]
    parts = [written[start:end] for start, end in itertools.pairwise(edges)]
    assert read(parts) == read([written])


@given(st.sampled_from(sorted(NAMES)), ARGUMENTS)
def test_a_call_survives_writing_and_reading(name: str, arguments: dict[str, object]) -> None:
    text, calls = read([shown_call(ToolCall("", name, json.dumps(arguments)))])
    assert text == ""
    assert [(found, json.loads(written)) for found, written in calls] == [(name, arguments)]


@pytest.mark.parametrize(
    "arguments", ['{"a": ' + "[" * 2000 + "]" * 2000 + "}", "NaN", "oops", "5"]
)
def test_unparsable_arguments_are_still_a_call(arguments: str) -> None:
    written = f"Look: <<TOOL name=\"ping\" args='{arguments}'>> ok"
    assert read([written]) == ("Look:  ok", [("ping", arguments)])
    assert read(list(written)) == ("Look:  ok", [("ping", arguments)])


@pytest.mark.parametrize("piece_chars", [1_000_000, 4096, 1000])
def test_oversized_arguments_are_cut_and_hidden(piece_chars: int) -> None:
    written = f'<<TOOL name="ping" args=\'{{"a": "{"x" * 200_000}"}}\'>> ok'
    pieces = [written[at : at + piece_chars] for at in range(0, len(written), piece_chars)]
    text, calls = read(pieces)
    assert text == " ok"
    assert [(name, len(arguments)) for name, arguments in calls] == [("ping", MAX_ARGUMENT_CHARS)]


@pytest.mark.parametrize("piece", ["<", "<<TOOL", '<<TOOL name="', '<<TOOL name="ping" args=\''])
def test_repeated_openings_take_linear_time(piece: str) -> None:
    with spending() as spent:
        read([piece * (400_000 // len(piece))])
    assert spent.pieces < 40
