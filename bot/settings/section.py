"""What every table of a configuration file is made of: refused unknown keys, durations in words."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_DURATION = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h|d)$")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(value: object) -> object:
    """`30s`, `10m`, `168h` as a timedelta; anything else is pydantic's to judge."""
    if not isinstance(value, str):
        return value
    match = _DURATION.match(value.strip())
    if match is None:
        raise ValueError('write a duration such as "30s", "10m" or "168h"')
    return timedelta(seconds=float(match[1]) * _UNITS_S[match[2]])


Duration = Annotated[timedelta, BeforeValidator(duration)]


class Section(BaseModel):
    """A table; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
