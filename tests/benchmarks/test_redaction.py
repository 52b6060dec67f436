"""What redaction finds, leaves and costs; on KORTEX_REDACTION_CORPUS, a JSON Lines file, when set."""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.privacy.redactor import TextRedactor
from tests import redaction_corpus
from tests.redaction_corpus import Row, changed, recall

pytestmark = pytest.mark.benchmark
MEGABYTE = 1_000_000
BARS = {"A": 0.99, "B": 0.95, "P1": 0.95}
HOSTILE = (
    '"', "1.1.", "http://a:", "eyJ", "a@", "key=", "password=", "sk-", "-----BEGIN PRIVATE KEY-----",
    "4111 ", " ", "Cookie: a=", "QUJD", "bearer ", "<secret>", ":", "a@b.co ", "http://a:b@c ", "\\n",
    "%20", "[redacted:", "kind: Secret\ndata:\n", "DE44 ", "+1 ", "curl ", "token ", "xoxb-", "\x00", "é",
)  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    path = os.environ.get("KORTEX_REDACTION_CORPUS", "")
    return list(redaction_corpus.read(Path(path)) if path else redaction_corpus.own())


@pytest.fixture(scope="module")
def redact() -> Callable[[str], str]:
    return TextRedactor([f"a-configured-secret-{n}" for n in range(12)], b"key").redact


@pytest.mark.parametrize("tier", ["A", "B", "P1"])
def test_redaction_finds_enough_secrets(
    rows: list[Row], redact: Callable[[str], str], tier: str
) -> None:
    total, missed = recall(rows, tier, redact)
    share = 1 - len(missed) / total

    _say(f"\n{tier}: {total - len(missed)} of {total} = {share:.1%} (bar {BARS[tier]:.0%})")
    assert share >= BARS[tier], [r.text[:80] for r in missed]


def test_redaction_leaves_harmless_text_unchanged(
    rows: list[Row], redact: Callable[[str], str]
) -> None:
    damaged = changed(rows, redact)

    _say(f"\nnegatives changed: {len(damaged)} of {sum(r.kind == 'negative' for r in rows)}")
    assert [r.text[:80] for r in damaged] == []


def test_the_cost_of_redacting_logs(rows: list[Row], redact: Callable[[str], str]) -> None:
    dice = random.Random(1)
    calm = [r.text for r in rows if r.kind == "negative"]
    secret = [r.text for r in rows if r.kind == "positive"]
    lines = [dice.choice(secret if dice.random() < 0.01 else calm) for _ in range(20_000)]
    text = "\n".join(lines)

    _say(f"\nlog text, 1 % with secrets: {len(text) / MEGABYTE / _seconds(redact, text):.1f} MB/s")


@pytest.mark.parametrize("unit", HOSTILE, ids=[repr(u) for u in HOSTILE])
def test_the_cost_of_redacting_hostile_text(redact: Callable[[str], str], unit: str) -> None:
    text = (unit * MEGABYTE)[:MEGABYTE]
    half, whole = _seconds(redact, text[: MEGABYTE // 2]), _seconds(redact, text)

    _say(f"\n1 MB of {unit!r}: {whole:.3f} s, {whole / half:.1f} times half of it")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _seconds(redact: Callable[[str], str], text: str) -> float:
    def once() -> float:
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    return min(once() for _ in range(3))
