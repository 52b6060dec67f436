"""Products with missing samples or unreachable targets: their state then is unknown."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from pydantic import JsonValue

from adapters.llm.triage.case import SeenResult, instant, plain, text_of
from adapters.llm.triage.telling import clock


def samples_missing(
    metrics: SeenResult, products: Collection[str], now: datetime | None, *, goes_on: bool = False
) -> Iterator[str]:
    """One text per product, or for all if none are named; with `goes_on` only current gaps.

    Disappeared signals are evidence instead, and listed with the suspects.
    """
    told = {text_of(row, "product") for row in metrics.rows("disappeared")}
    for row in metrics.rows("gaps"):
        product, until = text_of(row, "product"), text_of(row, "until")
        if (products and product not in products) or (goes_on and until):
            continue
        if not until and not goes_on and product in told:
            continue
        if words := _words(row, now):
            yield f"{plain(product)}: {words} [{metrics.mark}]"


def ended_roles(metrics: SeenResult, product: str) -> frozenset[str]:
    """The roles of its figures that have no newer samples."""
    rows = (row for row in metrics.rows("gaps") if text_of(row, "product") == product)
    return frozenset(
        role for row in rows if not text_of(row, "until") for role in text_of(row, "roles").split()
    )


def _words(row: Mapping[str, JsonValue], now: datetime | None) -> str:
    since, until = instant(text_of(row, "since")), instant(text_of(row, "until"))
    if since is None:
        return ""
    if row.get("is_down") is True:
        signal = plain(text_of(row, "signal"))
        before = "before " if row.get("since_before") is True else ""
        return f"a metrics target is unreachable since {before}{clock(since, now)} ({signal})"
    roles = ", ".join(plain(role) for role in text_of(row, "roles").split())
    roles = plain(text_of(row, "signal")) or roles
    if until is None:
        return f"no samples of its {roles} after {clock(since, now)}"
    begin = clock(since, now).removesuffix(" UTC")
    return f"no samples of its {roles} between {begin} and {clock(until, now)}"
