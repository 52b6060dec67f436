"""The shape of `[deploys.NAME]`: which systems are asked what they deployed."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bot.settings.access import AccessSettings
from bot.settings.section import LONGEST, NotEmpty, duration

GITHUB_API = "https://api.github.com"
SHORTEST = timedelta(seconds=10)
Period = Annotated[timedelta, BeforeValidator(duration), Field(ge=SHORTEST, le=LONGEST)]


class DeployFeedSettings(AccessSettings):
    """`[deploys.NAME]`. Flux is read from the cluster of `[kubernetes]` and takes no address.

    `projects` are GitHub's repositories (`owner/name`), GitLab's projects (path or number), Argo CD's
    projects (none: all that the token may see).
    """

    kind: Literal["github", "gitlab", "argocd", "flux"]
    url: str = ""
    projects: tuple[NotEmpty, ...] = ()
    every: Period = timedelta(minutes=1)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        match self.kind:
            case "github" | "gitlab" if not self.projects:
                raise ValueError("name the `projects` that are asked")
            case "gitlab" | "argocd" if not self.url:
                raise ValueError("needs an address in `url`")
            case "flux" if self.url or self.projects:
                raise ValueError("Flux is read from the cluster: leave out `url` and `projects`")
            case _:
                return self

    @property
    def address(self) -> str:
        """Where it is asked; GitHub's own where none is named."""
        return self.url or (GITHUB_API if self.kind == "github" else "")
