"""`[otel]`: where traces and metrics are sent, and how much of them."""

from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from bot.settings.section import Duration, NotEmpty, Section, Token

# RFC 9110, 5.6.2: what the name of a header is made of.
HEADER_NAME: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$"


def _collector(value: str) -> str:
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError("an address such as http://collector:4318 (OTLP over HTTP)")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a name or a password; write it into otel.headers")
    return value


class OtelSettings(Section):
    """`[otel]`. Empty `endpoint`: nothing is sent. `headers` are secrets.

    `sample_ratio` of turns are traced, by the turn's id. With `content` what people, models and
    tools said leaves as well, redacted. `resource` is added to what names this service.
    """

    endpoint: Annotated[str, AfterValidator(_collector)] = ""
    headers: dict[Annotated[str, Field(pattern=HEADER_NAME)], Token] = Field(default_factory=dict)
    sample_ratio: float = Field(default=1.0, ge=0.0, le=1.0)
    content: bool = False
    metrics: bool = True
    metrics_interval: Duration = timedelta(seconds=60)
    resource: dict[NotEmpty, str] = Field(default_factory=dict)
