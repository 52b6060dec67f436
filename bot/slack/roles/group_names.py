"""The id of a user group by its name: settings hold ids, people know names."""

from difflib import get_close_matches
from typing import Final

from pydantic import Field, ValidationError

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.web_api import LockedOut, Refused
from tools.output import clean_words

_INSTEAD: Final = "name people instead, by ids such as U0123ABCD: profile → ⋮ → Copy member ID"
_SHOWN: Final = 10
_HANDLE_CHARS: Final = 80


class NoSuchGroup(Exception):
    """The text says why there is no id, and what to do."""


class _Group(ApiObject):
    id: str = Field(pattern=r"^S[A-Z0-9]+$")
    handle: str = ""
    name: str = ""


class _Answer(ApiObject):
    usergroups: tuple[_Group, ...]


async def group_id(api: SlackCalls, name: str) -> str:
    """The id of the group with that handle (`@sre` or `sre`) or name. Raises NoSuchGroup.

    One call of usergroups.list (https://docs.slack.dev/reference/methods/usergroups.list).
    """
    try:
        groups = _Answer.model_validate(await api.call("usergroups.list")).usergroups
    except LockedOut as error:
        raise NoSuchGroup(f"Slack rejects the bot token ({error.code})") from error
    except Refused as error:
        raise NoSuchGroup(_why(error.code)) from error
    except (SurfaceFailed, SurfaceGone, TimeoutError, ValidationError) as error:
        why = "unreadable answer" if isinstance(error, ValidationError) else str(error)
        raise NoSuchGroup(f"Slack did not list its user groups ({why})") from error
    wanted = name.strip().removeprefix("@").casefold()
    handles = {each.handle.casefold(): each.id for each in groups}
    named = [each.id for each in groups if each.name.casefold() == wanted]
    if wanted in handles:
        return handles[wanted]
    if len(named) == 1:
        return named[0]
    raise NoSuchGroup(_nobody(wanted, [handle for handle in handles if handle], len(named)))


def _why(code: str) -> str:
    match code:
        case "plan_upgrade_required" | "paid_teams_only":
            return f"user groups need a paid Slack plan; {_INSTEAD}"
        case "missing_scope":
            return (
                "the app has no scope usergroups:read: add it (app-manifest.yml has all), "
                "reinstall the app and copy the new token"
            )
        case _:
            return f"Slack does not list its user groups ({code})"


def _nobody(wanted: str, handles: list[str], found: int) -> str:
    if found:
        shown = clean_words(handles[0], _HANDLE_CHARS) if handles else ""
        which = f"the handle, such as @{shown}" if shown else "the id of one, such as S0123ABCD"
        return f"{found} user groups are named {wanted!r}; give {which}"
    if not handles:
        return f"this workspace has no user groups (they need a paid plan); {_INSTEAD}"
    handles = [clean_words(each, _HANDLE_CHARS) for each in handles]
    near = get_close_matches(wanted, handles, n=1)
    meant = f"did you mean @{near[0]}?" if near else ""
    some = ", ".join(f"@{handle}" for handle in sorted(handles)[:_SHOWN])
    return f"no user group is called {wanted!r}; {meant or f'there are {some}'}"
