"""`[observe.errors]`: the error tracker, and the products of its projects."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bot.settings.access import AccessSettings
from bot.settings.named_backends import BackendName, ByName, HoldsNamed
from bot.settings.section import NotEmpty

# As Sentry checks them; one of digits alone is a number of Sentry's.
Slug = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,100}$")]
Projects = Annotated[tuple[Slug, ...], Field(min_length=1, max_length=20)]


class ErrorsBackend(AccessSettings):
    """One organisation of Sentry. `projects` are slugs by product; else a product's name is one."""

    kind: Literal["sentry", "none"] = "none"
    url: str = ""
    organization: str = Field(default="", pattern=r"^[a-z0-9_-]{0,100}$")
    projects: dict[NotEmpty, Projects] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.kind == "sentry" and not self.url:
            raise ValueError('needs an address in `url`, such as "https://sentry.io"')
        if self.kind == "sentry" and not self.organization:
            raise ValueError("needs the `organization`, as in Sentry's addresses")
        return self


class NamedErrorsSettings(ErrorsBackend, ByName):
    """`[observe.errors.NAME]`."""


class ErrorsSettings(ErrorsBackend, HoldsNamed):
    """`[observe.errors]`: what every channel looks at that chooses no other, and those by name."""

    named: dict[BackendName, NamedErrorsSettings] = Field(default_factory=dict)
