"""The shape of `[page]`: the operator's page, which a browser shows."""

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from bot.settings.section import HostName, Section, duration

LONGEST_SIGN_IN = timedelta(days=7)
SignIn = Annotated[
    timedelta, BeforeValidator(duration), Field(ge=timedelta(minutes=5), le=LONGEST_SIGN_IN)
]


class PageSettings(Section):
    """`[page]`. Beside this machine's own names it answers to `hosts`, over https alone."""

    enabled: bool = True
    hosts: tuple[HostName, ...] = ()
    sign_in_lasts: SignIn = timedelta(hours=12)
