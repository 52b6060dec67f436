"""What every table of a configuration file is made of: refused unknown keys, durations in words."""

import ipaddress
import math
import re
from datetime import timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
)

from bot.domain.link_template import LINK_FIELDS, template_fields
from bot.settings.variables import Unset

_DURATION = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h|d)$")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HUGE_S = 1e12
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_DOTTED: Final = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


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

    # Each table's own validator would never be used: the file's holds them all.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    _unset: tuple[Unset, ...] = PrivateAttr(default=())

    def remember(self, unset: tuple[Unset, ...]) -> None:
        """Keep which variables the environment lacked when this file was read."""
        self._unset = unset

    @property
    def unset(self) -> tuple[Unset, ...]:
        """Those variables; of a whole file, not of a table within."""
        return self._unset


def absent_table() -> Any:
    """The value of a table that the file does not have: an empty one, judged with the whole file.

    One made where the class is defined would need a validator of its own, which nothing uses again.
    """
    return Field(default_factory=dict, validate_default=True)


NotEmpty = Annotated[str, Field(min_length=1)]


def _host_name(text: str) -> str:
    if not _HOST_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a host; write a name such as grafana.example.com")
    return text.lower()


def _local_host(text: str) -> str:
    address, slash, size = text.partition("/")
    if not text.strip() or (slash and not size.isdigit()):
        raise ValueError(f"{text!r} is not a name, glob, address or network")
    if slash or _DOTTED.fullmatch(address):
        network = ipaddress.ip_network(text, strict=False)
        if network.prefixlen == 0:
            raise ValueError(f"{text!r} covers every address, so nothing would stay local")
    return text


HostName = Annotated[str, AfterValidator(_host_name)]  # matched whole, in lower case


def _link_template(value: str) -> str:
    if not value:
        return value
    known = ", ".join(f"{{{name}}}" for name in sorted(LINK_FIELDS))
    try:
        parts, fields = urlsplit(value), template_fields(value)
    except ValueError as error:
        raise ValueError(f"an address with fields in braces: {known}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or "{" in parts.netloc:
        raise ValueError("an http or https address without a field in its host")
    if unknown := sorted(fields - LINK_FIELDS):
        raise ValueError(f"{{{unknown[0]}}} is not a field of a link; use one of {known}")
    return value


LinkTemplate = Annotated[str, AfterValidator(_link_template)]
LocalHost = Annotated[str, AfterValidator(_local_host)]
