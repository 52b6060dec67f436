"""What every table of a configuration file is made of: refused unknown keys, durations in words."""

import math
import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
)

from bot.settings.variables import Unset

_DURATION = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h|d)$")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HUGE_S = 1e12


LONGEST: Final = timedelta(days=366)  # of any duration: beyond it a deadline is no deadline


def duration(value: object) -> object:
    """`30s`, `10m`, `168h` as a timedelta, or a number of seconds. Raises ValueError for another."""
    match value:
        case timedelta():
            return value
        case bool():
            seconds = math.nan
        case int() | float():
            seconds = value
        case str() if words := _DURATION.match(value.strip()):
            seconds = float(words[1]) * _UNITS_S[words[2]]
        case _:
            seconds = math.nan
    if not math.isfinite(seconds):
        raise ValueError('write a duration such as "30s", "10m" or "168h"')
    # Within what a timedelta can hold; the bounds of the field judge it.
    return timedelta(seconds=max(-_HUGE_S, min(seconds, _HUGE_S)))


Duration = Annotated[
    timedelta, BeforeValidator(duration), Field(gt=timedelta(0), le=LONGEST)
]  # more than nothing


def sendable(secret: SecretStr) -> SecretStr:
    """Raises ValueError for what no HTTP header may hold."""
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("holds a line break or another character that no header may hold")
    return secret


Token = Annotated[SecretStr, AfterValidator(sendable)]  # goes into a header of ours


class Section(BaseModel):
    """A table; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    _unset: tuple[Unset, ...] = PrivateAttr(default=())

    def remember(self, unset: tuple[Unset, ...]) -> None:
        """Keep which variables the environment lacked when this file was read."""
        self._unset = unset

    @property
    def unset(self) -> tuple[Unset, ...]:
        """Those variables; of a whole file, not of a table within."""
        return self._unset
