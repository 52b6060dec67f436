"""The common arguments of sweeps: products, the window under test and the time before it."""

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from tools.capabilities import CallContext, Interval
from tools.contract import ToolInput
from tools.core.arguments import ProductOrNone, TimeRangeText
from tools.errors import InvalidArguments
from tools.products import ProductScope
from tools.timerange import instant_text, parse_time_range

MOST_PRODUCTS: Final = 100
LONGEST_WINDOW: Final = timedelta(hours=24)
SWEEP_SCOPE: Final = ProductScope(("product",), narrows=True)


class SweepInput(ToolInput):
    """The window under test; it is compared with the time before it."""

    time_range: TimeRangeText = "last 30m"
    product: Annotated[
        ProductOrNone, Field(description="asked about; the channel's other products are swept too")
    ] = ""


def products_of(arguments: SweepInput, call: CallContext) -> tuple[str, ...]:
    first = (arguments.product,) if arguments.product else ()
    return tuple(dict.fromkeys((*first, *call.products)))[:MOST_PRODUCTS]


def window_of(arguments: SweepInput, call: CallContext) -> Interval:
    """Raises InvalidArguments for an invalid or too long range."""
    window = parse_time_range(arguments.time_range, call.now).interval
    if window.end - window.start > LONGEST_WINDOW:
        raise InvalidArguments("time_range: at most 24 hours can be swept")
    return window


def at_text(seconds: float, like: datetime) -> str:
    """Seconds since the epoch as the instant that answers show."""
    return instant_text(datetime.fromtimestamp(seconds, like.tzinfo))
