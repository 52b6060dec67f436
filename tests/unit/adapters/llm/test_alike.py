"""Events of which only the text is read mean what they mean when each is read whole."""

import json
from collections.abc import Callable, Mapping
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.alike import Alike, Piece
from adapters.llm.anthropic.decode import AnthropicDecoder
from adapters.llm.decoding import EventDecoder
from adapters.llm.framing import MAX_TEXT_CHARS
from adapters.llm.messages import StreamChunk
from adapters.llm.openai.decode import OpenAIDecoder
from tests.fixtures_providers import joined


class OpenAIReadWhole(OpenAIDecoder):
    """Each event is read whole."""

    def piece_of(self, event: Mapping[str, object]) -> Piece | None:
        del event
        return None


class AnthropicReadWhole(AnthropicDecoder):
    """Each event is read whole."""

    def piece_of(self, event: Mapping[str, object]) -> Piece | None:
        del event
        return None


DECODERS: dict[str, tuple[type[EventDecoder], type[EventDecoder]]] = {
    "openai": (OpenAIDecoder, OpenAIReadWhole),
    "anthropic": (AnthropicDecoder, AnthropicReadWhole),
}
CHOICE = '{"id":"c","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":null}]}'
DELTA = '{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":@}}'
# What a server sends, "@" being where a piece of text stands.
EVENTS = {
    "openai": [
        CHOICE % '{"role":"assistant","content":@}',
        CHOICE % '{"content":@}',
        CHOICE % '{"content":@,"content":"twice"}',
        CHOICE % '{"content":"twice","content":@}',
        CHOICE % '{"content":@,"refusal":"no"}',
        CHOICE % '{"content":@,"tool_calls":[{"index":0,"function":{"arguments":"1"}}]}',
        CHOICE % '{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":@}}]}',
        CHOICE % '{"tool_calls":[{"index":0,"function":{"arguments":@}}]}',
        CHOICE % '{"tool_calls":[{"index":1,"id":@,"function":{"name":@,"arguments":"{}"}}]}',
        CHOICE % '{"tool_calls":[{"function":{"arguments":@}}]}',
        '{"model":@,"choices":[{"delta":{"content":@}}]}',
        '{"model":"other","service_tier":"priority","choices":[{"delta":{"content":@}}]}',
        '{"choices":[{"index":1,"delta":{"content":@}}]}',
        '{"choices":[{"delta":{"content":@}},{"index":1,"delta":{"content":"aside"}}]}',
        '{"choices":[{"delta":{"content":@},"finish_reason":"stop"}]}',
        '{"choices":[{"delta":{"content":@}}],"usage":{"prompt_tokens":3}}',
        '{"choices":[{"delta":{"content":"said"}}],"error":{"message":@}}',
        "[DONE]",
    ],
    "anthropic": [
        '{"type":"message_start","message":{"model":@,"usage":{"input_tokens":3}}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":@}}',
        '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":@}}',
        '{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":@}}}',
        DELTA % (0, "thinking_delta", "thinking"),
        DELTA % (0, "signature_delta", "signature"),
        DELTA % (1, "text_delta", "text"),
        DELTA % (2, "input_json_delta", "partial_json"),
        DELTA % (7, "text_delta", "text"),
        DELTA % (7, "thinking_delta", "thinking"),
        '{"type":@,"index":1,"delta":{"type":"text_delta","text":"said"}}',
        '{"type":"content_block_delta","index":1,"delta":{"type":@,"text":@}}',
        '{"type":"ping"}',
        '{"type":"content_block_stop","index":0}',
        '{"type":"content_block_stop","index":1}',
        '{"type":"content_block_stop","index":2}',
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}',
        '{"type":"message_stop"}',
    ],
}
# What may stand there: mostly a text, and else what a broken or a hostile server sends.
TEXTS = st.one_of(
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(["word", "c", "m", "twice", "text", "text_delta", "\x00 probe"]).map(
        json.dumps
    ),
    st.sampled_from(
        [
            '""',
            "null",
            "7",
            '"a","b"',
            '"a","content":"b"',
            '"a',
            ' "a" ',
            "{}",
            '"\\ud800"',
            "NaN",
            '"a"}}]} {"b":"c"',
            '"\x01"',
            "",
            '"\\"',
            '"a"}, "delta": {"content":"b"',
        ]
    ),
)


def sent(wire: str) -> st.SearchStrategy[bytes]:
    """Some events many times over, as answers are, and others between them."""
    runs = st.tuples(st.sampled_from(EVENTS[wire]), st.lists(TEXTS, min_size=1, max_size=8))
    return st.lists(runs, max_size=8).map(
        lambda found: b"".join(
            f"data: {event.replace('@', text)}\n\n".encode("utf-8", "surrogatepass")
            for event, texts in found
            for text in texts
        )
    )


def decoded(kind: type[EventDecoder], parts: list[bytes]) -> tuple[object, ...]:
    numbers = count(1)
    decoder = kind(lambda: f"made-{next(numbers)}")
    chunks: list[StreamChunk] = [chunk for part in parts for chunk in decoder.feed(part)]
    chunks += decoder.close()
    return joined(chunks), decoder.heard, decoder.billed, decoder.model, decoder.at_list_price


@pytest.mark.parametrize("wire", DECODERS)
@given(data=st.data())
def test_an_answer_is_what_it_is_when_each_event_is_read_whole(
    wire: str, data: st.DataObject
) -> None:
    answer = data.draw(sent(wire))
    cut = data.draw(st.integers(0, len(answer)))
    parts = [answer[:cut], answer[cut:]]
    ours, whole = DECODERS[wire]

    assert decoded(ours, parts) == decoded(whole, parts)


@pytest.mark.parametrize("wire", DECODERS)
def test_a_text_that_grows_too_long_ends_where_it_does_when_each_event_is_read_whole(
    wire: str,
) -> None:
    at = {"openai": 1, "anthropic": 6}[wire]
    event = f"data: {EVENTS[wire][at].replace('@', json.dumps('x' * 1000))}\n\n".encode()
    parts = [event * (MAX_TEXT_CHARS // 1000 + 3)]
    ours, whole = DECODERS[wire]

    assert decoded(ours, parts) == decoded(whole, parts)


def counted(say: Callable[[str], None], asked: list[object]) -> Alike:
    def piece_of(event: Mapping[str, object]) -> Piece | None:
        asked.append(event)
        return Piece(str(event["text"]), say)

    return Alike(piece_of)


def test_of_events_that_are_alike_only_the_first_is_read_whole() -> None:
    said: list[str] = []
    alike = counted(said.append, [])
    alike.learn(b'{"at":1,"text":"a"}', {"at": 1, "text": "a"})

    taken = alike.take([b'{"at":1,"text":"b"}', b'{"at":1,"text":"c"}', b'{"at":2,"text":"d"}'], 0)

    assert (taken, said) == (2, ["bc"])


def test_a_server_whose_events_are_never_alike_is_not_looked_at_for_ever() -> None:
    asked: list[object] = []
    alike = counted(lambda _text: None, asked)
    for at in range(100):
        payload = json.dumps({"at": at, "text": f"word {at}"}).encode()
        assert alike.take([payload], 0) == 0
        alike.learn(payload, json.loads(payload))

    assert len(asked) == 10


def test_a_text_that_also_stands_elsewhere_is_not_taken_for_its_place() -> None:
    said: list[str] = []
    alike = counted(said.append, [])
    alike.learn(b'{"id":"a","text":"a"}', {"id": "a", "text": "a"})

    assert alike.take([b'{"id":"b","text":"a"}'], 0) == 0
    assert said == []
