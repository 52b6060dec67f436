"""Argument types the built-in tools share: a product, a time range, a name that goes into a query."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.errors import InvalidArguments
from tools.instants import parse_duration
from tools.product_names import ANY_PRODUCT

_PRODUCT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}")
_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:.]{0,199}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
MIN_STEP = timedelta(seconds=1)
MAX_STEP = timedelta(days=1)


def _product(text: str) -> str:
    """A product ends up inside query languages: letters, digits and . _ / : - only."""
    if _PRODUCT.fullmatch(text) is None:
        raise ValueError("a product is letters, digits, '.', '_', '/', ':' or '-', at most 128")
    return text


def _product_or_any(text: str) -> str:
    return text if text == ANY_PRODUCT else _product(text)


def _product_or_none(text: str) -> str:
    return "" if text in ("", ANY_PRODUCT) else _product(text)


ProductOrNone = Annotated[str, AfterValidator(_product_or_none)]
# Without a description: every prompt lists the products, and a dozen schemas would repeat it.
Product = Annotated[str, AfterValidator(_product)]
ProductOrAny = Annotated[str, AfterValidator(_product_or_any), Field(description="'*' for all")]
TimeRangeText = Annotated[
    str, Field(description="'last 30m', 'now-2h..now-1h' or '2026-04-07T14:00:00Z/PT30M'")
]


def _metric_name(text: str) -> str:
    if _METRIC.fullmatch(text) is None:
        raise ValueError("a metric is given by its bare name, without a query around it")
    return text


def _labels(labels: dict[str, str]) -> dict[str, str]:
    if any(_LABEL.fullmatch(name) is None for name in labels):
        raise ValueError("a label name is letters, digits or '_'")
    return labels


def step_seconds(text: str | None) -> float | None:
    """Seconds of a resolution such as `5m`. Raises InvalidArguments."""
    if text is None:
        return None
    try:
        duration = parse_duration(text)
    except (InvalidArguments, OverflowError):
        duration = None
    if duration is None or not MIN_STEP <= duration <= MAX_STEP:
        raise InvalidArguments("step: a duration from 1s to 1d such as '1m', '5m' or '1h'")
    return duration.total_seconds()


MetricName = Annotated[
    str,
    AfterValidator(_metric_name),
    Field(description="Bare name, e.g. 'http_request_duration_seconds_p99'"),
]
Labels = Annotated[dict[str, str], Field(max_length=20), AfterValidator(_labels)]
StepText = Annotated[str, Field(max_length=20)]
