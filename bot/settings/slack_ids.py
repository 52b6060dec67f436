"""Slack's ids and names in a configuration, by their shape: a wrong one would match no account.

Ids are capitals and digits after a letter for the kind (https://docs.slack.dev/reference/objects/);
names of channels, people and groups hold no capitals.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

ASKING_HERE: Final = "operator"  # who asks with `kortex ask`
_GROUP: Final = re.compile(r"S[A-Z0-9]+")
_PERSON: Final = re.compile(r"[UW][A-Z0-9]+")
_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]+")
_CHANNEL_ID: Final = re.compile(r"[CGD][A-Z0-9]{8,}")
_DIRECT: Final = ("@direct", "@group")


def _group(text: str) -> str:
    if not _GROUP.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the id of a user group. They look like S0123ABCD: in Slack, People → "
            "User groups → the group → … → Copy group ID"
        )
    return text


def _person(text: str) -> str:
    if text != ASKING_HERE and not _PERSON.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the id of a person. They look like U0123ABCD: in Slack, the person's "
            "profile → ⋮ → Copy member ID"
        )
    return text


def _person_or_all(text: str) -> str:
    return text if text == "*" else _person(text)


def _channel(text: str) -> str:
    if text and not _CHANNEL.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the id of a channel. They look like C0123ABCD: in Slack, the channel's "
            "name → About → Channel ID"
        )
    return text


def _one_channel(text: str) -> str:
    if not text:
        raise ValueError("names no channel; write its id, such as C0123ABCD")
    return _channel(text)


def _channel_names(text: str) -> str:
    if text.startswith("#"):
        raise ValueError(f"names are compared without #: write {text.lstrip('#')!r}")
    if text.startswith("@") and text not in _DIRECT:
        raise ValueError(f"{text!r}: only @direct (private messages) and @group begin with @")
    if _CHANNEL_ID.fullmatch(text):
        raise ValueError(f"{text!r} is a channel's id; write its name, or a glob of names")
    return text


GroupId = Annotated[str, AfterValidator(_group)]
PersonId = Annotated[str, AfterValidator(_person)]
PersonIdOrAll = Annotated[str, AfterValidator(_person_or_all)]
ChannelId = Annotated[str, AfterValidator(_one_channel)]
ChannelIdOrNone = Annotated[str, AfterValidator(_channel)]
ChannelNames = Annotated[str, AfterValidator(_channel_names)]
