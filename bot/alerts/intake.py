"""Alerts as they come in: each under its rule, its words redacted and cut, or counted and dropped."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from bot.domain.alerts import (
    LABEL_CHARS,
    MOST_LABELS,
    TITLE_CHARS,
    VALUE_CHARS,
    Alert,
    AlertRule,
    FiledAlert,
    ProductOf,
    rule_of,
)
from tools.redactor import Redactor

# A product's name goes into the question: letters, digits and what joins them, nothing else.
_PRODUCT: Final = re.compile(r"[A-Za-z0-9][\w./-]{0,99}", re.ASCII)
_SPACES: Final = re.compile(r"\s+")
# Called for every request: its sender, the number taken, the number without a rule.
Counted = Callable[[str, str, int], None]
File = Callable[[Sequence[FiledAlert]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class IntakeCounts:
    """How many alerts of a request a rule took, and how many none did; a repeated one counts once."""

    taken: int
    unmatched: int


class AlertIntake:
    """Judges alerts by the rules in force and hands them on to be filed."""

    def __init__(
        self,
        rules: Sequence[AlertRule],
        product_of: ProductOf,
        redactor: Redactor,
        file: File,
        counted: Counted,
    ) -> None:
        self._rules = rules
        self._product_of = product_of
        self._redactor = redactor
        self._file = file
        self._counted = counted

    async def take(self, alerts: Sequence[Alert]) -> IntakeCounts:
        """All of them or none. Raises StorageUnavailable, RedactionFailed."""
        # Thousands of labels take their time: not on the loop.
        filed, unmatched = await asyncio.to_thread(self._judged, alerts)
        if filed:
            await self._file(filed)
        source = alerts[0].source if alerts else ""
        for outcome, number in (("taken", len(filed)), ("unmatched", unmatched)):
            if number:
                self._counted(source, outcome, number)
        return IntakeCounts(len(filed), unmatched)

    def _judged(self, alerts: Sequence[Alert]) -> tuple[Sequence[FiledAlert], int]:
        # An alert that a request repeats counts once; the later one is meant.
        found = {each.id: each for each in alerts}.values()
        filed = [filed for each in found if (filed := self._filed(each)) is not None]
        return filed, len(found) - len(filed)

    def _filed(self, alert: Alert) -> FiledAlert | None:
        rule = rule_of(self._rules, alert)
        if rule is None:
            return None
        product = rule.product or self._product(alert.labels)
        group = _digest(alert.source, alert.group)
        key = _digest(alert.source, alert.id)
        former = _digest(alert.source, alert.group, alert.id)
        return FiledAlert(self._safe(alert), rule, product, key, group, former)

    def _product(self, labels: Mapping[str, str]) -> str:
        named = self._product_of(labels).strip()
        return named if _PRODUCT.fullmatch(named) and self._redactor.redact(named) == named else ""

    def _safe(self, alert: Alert) -> Alert:
        whole = {
            _line(name): _line(value)
            for name, value in islice(sorted(alert.labels.items()), MOST_LABELS)
        }
        masked = self._redactor.redact_value({**whole})
        found = masked.items() if isinstance(masked, dict) else ()
        labels = {n[:LABEL_CHARS]: v[:VALUE_CHARS] for n, v in found if isinstance(v, str)}
        title = self._redactor.redact(_line(alert.title))[:TITLE_CHARS]
        return replace(alert, title=title, labels=labels)


def _line(text: str) -> str:
    """On one line, whole: half a secret would not be known for one."""
    # A header's bytes that are no text come as lone surrogates.
    return _SPACES.sub(" ", text.encode("utf-8", "replace").decode()).strip()


def _digest(*parts: str) -> str:
    told = "\x00".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]
