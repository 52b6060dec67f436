"""Redacted JSON is JSON, with the same values, except for masked ones."""

import json
import re
import time
from collections.abc import Callable
from itertools import accumulate, starmap

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.privacy.redactor import TextRedactor
from bot.store.sealing import Sealing
from tools.redactor import redacted_json

REDACTOR = TextRedactor([], b"k" * 32)
# What an escape ends with, before what a rule looks for.
ESCAPED = st.sampled_from(["\n", "\t", "\r", "\b", "\f", "\\", '"', "/", "\x01", "\x7f", "é", ""])
FOUND = st.sampled_from(["@evil.com", "bob@evil.com", "AKIAIOSFODNN7EXAMPLE", "10.1.2.3", "ok"])
TEXTS = st.lists(st.tuples(ESCAPED, FOUND), max_size=3).map(
    lambda parts: "".join(escaped + found for escaped, found in parts)
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    TEXTS | st.integers(-9, 9) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
def test_redacted_json_has_redacted_values_and_the_same_structure(
    value: dict[str, JsonValue],
) -> None:
    text = orjson.dumps(value).decode()

    assert orjson.loads(redacted_json(text, REDACTOR)) == REDACTOR.redact_value(value)


@pytest.mark.parametrize(
    "value", ["\n@evil.com", "a\n@evil.com", "\t@evil.com\n", "\\n@evil.com", "C:\\new@evil"]
)
def test_an_escape_before_an_address_is_kept(value: str) -> None:
    text = orjson.dumps({"line": value}).decode()

    found = orjson.loads(redacted_json(text, REDACTOR))["line"]

    assert found == REDACTOR.redact(value)


def unescaped(text: str, _layer: int) -> str:
    shown = re.sub(r"\\+u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)
    return shown.replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")


AWS_KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize(
    "frame", ["{}", "{}\n", "\ufeff{}", '{"n":1}\r\n{}\r\n', "data: {}\n\n", "[{}]"]
)
@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('{"k":"\\u0041KIAIOSFODNN7EXAMPLE"}', AWS_KEY),
        ('{"k":"AKIAIOSF\\u004fDNN7EXAMPLE"}', AWS_KEY),
        ('{"k":"\\ud83d\\ude00AKIAIOSFODNN7EXAMPLE"}', AWS_KEY),
        ('{"\\u0041KIAIOSFODNN7EXAMPLE":1}', AWS_KEY),
        ('{"k":"\\bAKIAIOSFODNN7EXAMPLE\\b"}', AWS_KEY),
        ('{"mail":"bob\\u0040evil.com"}', "bob@evil.com"),
        ('{"pass\\u0077ord":"hunter2hunter2"}', "hunter2hunter2"),
        ('{"pass\\u0077ord":12345678901234}', "12345678901234"),
        ('{"u":"https:\\/\\/bob:hunter2hunter2@db.evil.com\\/x"}', "hunter2hunter2"),
        ('{"h":"Authorization: Bearer\\u0020abcdefghijklmnop1234567890"}', "abcdefghijklmnop"),
    ],
)  # fmt: skip
def test_a_secret_that_only_decoding_shows_is_masked(
    text: str, hidden: str, frame: str, depth: int
) -> None:
    for _ in range(depth):
        text = json.dumps({"body": text})
    text = frame.replace("{}", text)

    for found in (redacted_json(text, REDACTOR), REDACTOR.redact(text)):
        layers = [*accumulate(range(depth + 3), unescaped, initial=found)]
        assert [layer for layer in layers if hidden in layer] == []


def test_json_in_a_quoted_text_of_a_line_is_decoded() -> None:
    line = 'error: body="{\\"pass\\\\u0077ord\\":\\"hunter2hunter2\\"}" end'

    found = REDACTOR.redact(line)

    assert "hunter2" not in found
    assert found.startswith('error: body="{')
    assert found.endswith('}" end')


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"bob@evil.com","a":"x"}',
        '{"password":"hunter2hunter2","password":""}',
        '[{"b":{"a":"bob@evil.com" , "a":null}}]',
        '{"a":"bob\\u0040evil.com","a":"x"}',
        '{"a":"bob@evil.com","\\u0061":"x"}',
    ],
)
def test_a_value_that_conceals_another_is_masked(text: str) -> None:
    found = redacted_json(text, REDACTOR)

    assert orjson.loads(found) == orjson.loads(text)
    assert not any(hidden in found for hidden in ("bob", "hunter2"))


@pytest.mark.parametrize(
    "text", ['{"a": 1.50, "b": [1e3]}', ' {"a":"x"}\n', "[123456789012345678901234567890]", '"x"']
)
def test_json_without_a_secret_is_unchanged(text: str) -> None:
    assert redacted_json(text, REDACTOR) == text


@pytest.mark.parametrize(
    "text", [' {"line":"\\n@evil.com"}', '\n["\\n@evil.com"]', '"\\n@evil.com"']
)
def test_json_with_surrounding_space_and_a_json_string_are_kept(text: str) -> None:
    assert orjson.loads(redacted_json(text, REDACTOR)) == orjson.loads(text)


@pytest.mark.parametrize("text", ["{", '{"a": "bob@evil.com"', "[bob@evil.com]", "bob@evil.com"])
def test_invalid_json_is_redacted_as_text(text: str) -> None:
    assert redacted_json(text, REDACTOR) == REDACTOR.redact(text)


@pytest.mark.parametrize(
    "value", ["\n@evil.com", "a\\n@evil.com", "\t10.1.2.3\u2028", 'a"\\@evil.com']
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_json_within_a_text_of_json_stays_json(value: str, depth: int) -> None:
    inner = orjson.dumps([value]).decode()
    for _ in range(depth):
        inner = orjson.dumps({"body": inner}).decode()

    found: JsonValue = REDACTOR.redact_value({"outcome": inner})
    for name in ("outcome", *["body"] * depth):
        assert isinstance(found, dict)
        found = orjson.loads(str(found[name]))

    assert found == [REDACTOR.redact(value)]


LINES = st.lists(st.dictionaries(TEXTS, VALUES, max_size=2), min_size=1, max_size=4)


@given(LINES, st.sampled_from(["", "\n", "\n\n"]), st.sampled_from(["", '{"cut": "off\\n@evil.c']))
def test_each_line_of_json_by_line_stays_json(
    values: list[dict[str, JsonValue]], blank: str, cut: str
) -> None:
    text = "\n".join(orjson.dumps(value).decode() for value in [{"n": 1}, *values])
    text += f"{blank}\n{cut}" if cut else blank

    for found in (redacted_json(text, REDACTOR), REDACTOR.redact_value({"body": text})):
        body = found["body"] if isinstance(found, dict) else found
        lines = [line for line in str(body).split("\n") if line]
        whole = lines[:-1] if cut else lines
        was: list[JsonValue] = [{"n": 1}, *values]
        is_and_was = zip(
            flat(leaves(was)), flat(leaves([orjson.loads(each) for each in whole])), strict=True
        )
        assert all(starmap(is_masked_only, is_and_was))
        by_values = json.dumps(REDACTOR.redact_value(was))
        assert [
            hidden for hidden in HIDDEN if hidden in str(body) and hidden not in by_values
        ] == []


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ("18446744073709551617", 2**64 + 1),
        ("-Infinity", float("-inf")),
        ('"\\ud800"', "?"),
        ('"x\\n@evil.com"', "x\n@evil.com"),
    ],
)
def test_json_only_for_python_has_its_values_redacted(odd: str, kept: JsonValue) -> None:
    text = f'{{"odd": {odd}, "mail": "bob@evil.com\\n@evil.com", "b": 1e999}}'

    found = json.loads(redacted_json(text, REDACTOR))

    assert found == {
        "odd": REDACTOR.redact(kept) if isinstance(kept, str) else kept,
        "mail": REDACTOR.redact("bob@evil.com\n@evil.com"),
        "b": float("inf"),
    }


def test_json_behind_a_byte_order_mark_stays_json() -> None:
    found = redacted_json('\ufeff{"line":"\\n@evil.com bob@evil.com"}', REDACTOR)

    assert found.startswith("\ufeff")
    assert orjson.loads(found[1:]) == {"line": REDACTOR.redact("\n@evil.com bob@evil.com")}


@pytest.mark.parametrize("value", ["\n@evil.com", "\\n@evil.com", "bob@evil.com\n@evil.com"])
def test_json_in_a_database_row_stays_json(value: str) -> None:
    sealing = Sealing(redactor=REDACTOR)
    row = sealing.line(sealing.body({"line": value}))

    assert orjson.loads(sealing.line(row)) == {"line": REDACTOR.redact(value)}


@pytest.mark.parametrize("depth", [400, 1000, 1020, 1500, 100_000])
def test_too_deeply_nested_json_is_redacted_as_text(depth: int) -> None:
    secret = "AKIA" + "Q3EGRIZTZ6XXYXQ7"
    text = "[" * depth + f'"{secret}"' + "]" * depth
    assert secret not in redacted_json(text, REDACTOR)


MARK = re.compile(r"\[redacted:[a-z0-9-]+#[0-9a-f]+\]")
HIDDEN = ("bob@evil.com", "AKIAIOSFODNN7EXAMPLE")
WRITERS: dict[str, Callable[[JsonValue], str]] = {
    "compact": lambda value: orjson.dumps(value).decode(),
    "spaced": lambda value: json.dumps(value, ensure_ascii=False),
    "escaped": lambda value: json.dumps(value).replace("/", "\\/"),
    "indented": lambda value: json.dumps(value, indent=2),
    "json in json": lambda value: json.dumps({"body": json.dumps(value)}),
    "json in json in json": lambda value: json.dumps([json.dumps({"body": json.dumps(value)})]),
}
AROUND = {
    "log line": ("2026-11-28T05:00:00Z INFO request body=", " took 12 ms"),
    "event of SSE": ("event: delta\ndata: ", "\n\n"),
    "second event": ('data: {"n": 1, "mail": "bob@evil.com"}\n\ndata: ', "\n\ndata: [DONE]\n\n"),
    "bracketed line": ("[INFO] [worker-1] {unparsed} got ", " [end]"),
}


def leaves(value: JsonValue) -> list[object]:
    """Names, texts and the rest in order, with the kinds of what holds them."""
    if isinstance(value, dict):
        return ["{", *(leaf for name in value for leaf in (name, *leaves(value[name]))), "}"]
    if isinstance(value, list):
        return ["[", *(leaf for item in value for leaf in leaves(item)), "]"]
    return [unnested(value)] if isinstance(value, str) else [value]


def unnested(text: str) -> object:
    try:
        found = json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
    return tuple(leaves(found)) if isinstance(found, dict | list) else text


def flat(found: object) -> list[object]:
    return (
        [leaf for one in found for leaf in flat(one)]
        if isinstance(found, tuple | list)
        else [found]
    )


def is_masked_only(was: object, now: object) -> bool:
    if not isinstance(was, str) or not isinstance(now, str):
        return was == now
    kept = ".+".join(map(re.escape, MARK.split(now)))
    return re.fullmatch(kept, was, re.DOTALL) is not None


@given(
    value=st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3),
    writer=st.sampled_from(sorted(WRITERS)),
    around=st.sampled_from(sorted(AROUND)),
)
def test_json_within_a_text_keeps_its_shape_and_its_surroundings(
    value: dict[str, JsonValue], writer: str, around: str
) -> None:
    before, after = AROUND[around]
    text = WRITERS[writer](value)

    found = REDACTOR.redact(f"{before}{text}{after}")

    beginning = str(REDACTOR.redact(before))
    assert found.startswith(beginning)
    assert found.endswith(after)
    piece = found[len(beginning) : len(found) - len(after)]
    was, now = flat(leaves(json.loads(text))), flat(leaves(json.loads(piece)))
    assert len(was) == len(now)
    assert all(map(is_masked_only, was, now))
    by_values = json.dumps(REDACTOR.redact_value(value))
    assert [hidden for hidden in HIDDEN if hidden in found and hidden not in by_values] == []


@given(value=st.lists(TEXTS, min_size=1, max_size=3), end=TEXTS)
def test_truncated_json_has_no_cut_escape(value: list[str], end: str) -> None:
    text = json.dumps([*value, f"{end} unfinished"])[:-2]

    found = REDACTOR.redact(f"2026-11-28 INFO body={text}")

    kept = json.loads(found.removeprefix("2026-11-28 INFO body=") + '"]')
    assert all(map(is_masked_only, [*value, f"{end} unfinished"], kept))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('INFO {"a":"\\nbob@evil.com","a":"x"}', '{"a":"\\n[MARK]","a":"x"}'),
        ('INFO ["--password","hunter2hunter"] x', '["--password","[MARK]"] x'),
        ('INFO {"n": 1.50, "big": 18446744073709551617, "m": "bob@evil.com"}',
         '{"n": 1.50, "big": 18446744073709551617, "m": "[MARK]"}'),
        ('INFO {"secret_pin": 12345678, "password": "bob@evil.com"}', None),
        ("domain\\bob@evil.com said hello", "domain\\[MARK] said hello"),
    ],
)  # fmt: skip
def test_json_in_a_line_is_unchanged_except_for_its_masks(text: str, kept: str | None) -> None:
    found = REDACTOR.redact(text)

    assert kept is None or MARK.sub("[MARK]", found).removeprefix("INFO ") == kept
    assert not any(hidden in found for hidden in (*HIDDEN, "hunter2hunter"))


@pytest.mark.parametrize("opening", ['{"a":', '[["', "[" * 9 + '"', '{"'])
def test_openings_without_json_cost_little(opening: str) -> None:
    text = opening * (64_000 // len(opening)) + " AKIAIOSFODNN7EXAMPLE"
    assert HIDDEN[1] not in REDACTOR.redact(text)


# So dense with findings that the values together, though not the whole text, fill a window of the rules.
DENSE: dict[str, Callable[[int], JsonValue]] = {
    "addresses": lambda n: {"u": f"ann{n}@example.com", "n": n, "is": [True, None, 1.5, 2, 3]},
    "tokens": lambda n: {"k": f"token=AbC{n * 104_729}dEfGhIjK", "n": [n, n, n, n]},
    "addresses behind an escape": lambda n: {"t": f"line\n@evil{n}.com", "n": 2**64 + n},
    "fields": lambda n: {"password": f"s3cr3t-{n * 7919}-x", "of": [f"ann{n}@example.com"]},
}


@pytest.mark.parametrize("made", DENSE.values(), ids=DENSE)
@pytest.mark.parametrize("between", [" ", "\n", ", "])
def test_many_pieces_of_json_are_redacted_like_single_ones(
    made: Callable[[int], JsonValue], between: str
) -> None:
    pieces = [json.dumps(made(number)) for number in range(400)]

    found = REDACTOR.redact(between.join(pieces))

    assert found == between.join(map(REDACTOR.redact, pieces))


@pytest.mark.parametrize("made", DENSE.values(), ids=DENSE)
def test_the_time_for_dense_json_grows_linearly(
    made: Callable[[int], JsonValue],
) -> None:
    def took(count: int) -> float:
        text = json.dumps([made(number) for number in range(count)])
        started = time.process_time()
        TextRedactor([], b"k" * 32).redact(text)
        return time.process_time() - started

    small = min(took(300) for _ in range(3))

    assert min(took(3_000) for _ in range(3)) < 30 * small + 0.1
