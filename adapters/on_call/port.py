"""What is asked of an on-call rota, and what counts as a name in it. Pure."""

import re
from typing import Final, Protocol

from adapters.errors import BadAnswer

# A rota names a few people; each e-mail address costs one look-up of fifty a minute in Slack.
MAX_PEOPLE: Final = 20
# Slack user ids are opaque, but all begin so (https://docs.slack.dev/reference/objects/user-object).
SLACK_ID: Final = re.compile(r"[UW][A-Z0-9]{1,30}")
_EMAIL: Final = re.compile(r"[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}")


class OnCall(Protocol):
    """One rota: a value; equal ones are the same rota."""

    async def people(self) -> frozenset[str]:
        """E-mail addresses, in lower case, and Slack ids of who is on call now; maybe nobody.

        Raises AdapterError when that cannot be told.
        """
        ...


def checked(names: frozenset[str]) -> frozenset[str]:
    """The names, addresses in lower case.

    Raises BadAnswer when one is neither an address nor a Slack id, or when there are too many: a
    list that is not understood whole is not a list of who may decide.
    """
    if len(names) > MAX_PEOPLE:
        raise BadAnswer(f"{len(names)} people are on call; at most {MAX_PEOPLE} can be looked up")
    if not all(SLACK_ID.fullmatch(name) or _EMAIL.fullmatch(name) for name in names):
        raise BadAnswer("someone on call is named by neither an e-mail address nor a Slack id")
    return frozenset(name if SLACK_ID.fullmatch(name) else name.lower() for name in names)
