"""Redaction: what must not leave is masked before it does, and a failure sends nothing.

Configured secrets are matched literally, with their encodings. Shapes come from `redaction.toml`
and run on RE2, so hostile text costs linear time. Rules live in data, checks on matches here.
"""

import base64
import hashlib
import hmac
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal
from urllib.parse import quote

import re2
from pydantic import BaseModel, ConfigDict

from tools.redactor import MASK_PREFIX, RedactionFailed

SHORTEST_LITERAL = 8  # masking shorter configured values would eat ordinary words
MATCHER_BYTES = 32 << 20  # RE2's default of 8 MiB makes it rebuild its automaton over and over


class Rule(BaseModel):
    """One `[[rules]]` entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    pattern: str
    gate: tuple[str, ...]
    kind: Literal["secret", "pii"] = "secret"
    verify: Literal["", "luhn", "iban", "not_a_word"] = ""


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: Rule
    matcher: Any  # re2 ships no types
    groups: tuple[int, ...]
    verify: Callable[[str], bool]


class TextRedactor:
    """Masks configured secrets, secret shapes and, unless switched off, personal data."""

    def __init__(self, secrets: Iterable[str], key: bytes, *, pii: bool = True) -> None:
        self._key = key
        self._literals = _literal_matcher(secrets)
        self._rules = [_compile(r) for r in _rules() if pii or r.kind == "secret"]

    def redact(self, text: str) -> str:
        """The text that may leave. Raises RedactionFailed."""
        try:
            clean = text.encode("utf-8", errors="replace").decode()
            if self._literals is not None:
                clean = self._literals.sub(lambda m: self._mask("configured", m.group()), clean)
            lowered = clean.lower()
            for compiled in self._rules:
                gate = compiled.rule.gate
                if not gate or any(g in lowered for g in gate):
                    clean = self._apply(compiled, clean)
        except Exception as error:
            raise RedactionFailed(type(error).__name__) from error
        return clean

    def _apply(self, compiled: _Compiled, text: str) -> str:
        pieces: list[str] = []
        at = 0
        for match in compiled.matcher.finditer(text):
            start, end = _span(match, compiled.groups)
            secret = text[start:end]
            if start < at or not secret or MASK_PREFIX in secret or not compiled.verify(secret):
                continue
            pieces += (text[at:start], self._mask(compiled.rule.name, secret))
            at = end
        return "".join((*pieces, text[at:])) if pieces else text

    def _mask(self, name: str, secret: str) -> str:
        """Equal secrets get equal marks, so that they can still be told apart."""
        tag = hmac.new(self._key, secret.encode(), hashlib.sha256).hexdigest()[:4]
        return f"{MASK_PREFIX}{name}#{tag}]"


def _rules() -> list[Rule]:
    text = resources.files("bot.chat").joinpath("redaction.toml").read_text(encoding="utf-8")
    return [Rule.model_validate(r) for r in tomllib.loads(text)["rules"]]


def _compile(rule: Rule) -> _Compiled:
    options = re2.Options()
    options.max_mem = MATCHER_BYTES
    matcher = re2.compile(rule.pattern, options)
    return _Compiled(rule, matcher, tuple(matcher.groupindex.values()), _VERIFIERS[rule.verify])


def _span(match: Any, groups: tuple[int, ...]) -> tuple[int, int]:
    for group in groups:
        start, end = match.span(group)
        if start >= 0 and end > start:
            return start, end
    whole: tuple[int, int] = match.span()
    return whole if not groups else (whole[0], whole[0])


def _literal_matcher(secrets: Iterable[str]) -> Any:
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) >= SHORTEST_LITERAL:
            raw = secret.encode()
            forms |= {
                secret,
                quote(secret, safe=""),
                base64.b64encode(raw).decode().rstrip("="),
                base64.urlsafe_b64encode(raw).decode().rstrip("="),
                raw.hex(),
            }
    if not forms:
        return None
    longest_first = sorted(forms, key=len, reverse=True)
    return re2.compile("|".join(re2.escape(f) for f in longest_first))


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    if not 13 <= len(digits) <= 19 or digits[0] not in (2, 3, 4, 5, 6):
        return False
    doubled = [
        d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2) for i, d in enumerate(digits[::-1])
    ]
    return sum(doubled) % 10 == 0 and not _looks_like_an_instant(text)


def _looks_like_an_instant(text: str) -> bool:
    """Epoch milliseconds to nanoseconds of this century are thirteen to nineteen digits as well."""
    return (
        text.isdigit()
        and len(text) in (13, 16, 19)
        and text.startswith(("15", "16", "17", "18", "19", "20"))
    )


def _iban(text: str) -> bool:
    compact = text.replace(" ", "")
    if not 15 <= len(compact) <= 34:
        return False
    turned = compact[4:] + compact[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1


_WORDS = (
    "true",
    "false",
    "null",
    "none",
    "undefined",
    "expired",
    "invalid",
    "missing",
    "required",
    "refresh",
    "rotation",
    "rotated",
    "unknown",
    "disabled",
    "enabled",
    "configured",
)


def _not_a_word(text: str) -> bool:
    """`token: expired` and `password_policy: strict-rotation` are prose; digits or mixture are not."""
    lowered = text.lower().rstrip(".,;:")
    if lowered.startswith(("$", "{{", "<", "*")) or lowered in _WORDS:
        return False
    return (
        any(c.isdigit() for c in text)
        or not text.replace("_", "").replace("-", "").isalpha()
        or text.lower() != text
    )


_VERIFIERS: Mapping[str, Callable[[str], bool]] = {
    "": lambda _: True,
    "luhn": _luhn,
    "iban": _iban,
    "not_a_word": _not_a_word,
}
