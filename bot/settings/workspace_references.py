"""Which workspace a role, a rule or a connection names, and whether that fits: a wrong one would deny for ever."""

from collections.abc import Iterator, Sequence

from bot.settings.keys import line_of
from bot.settings.model import Settings
from bot.settings.workspaces import EVERY

Found = tuple[Sequence[str], str]


def misplaced(settings: Settings, text: str, name: str) -> list[str]:
    found = (
        *_roles_elsewhere(settings),
        *_unknown_workspaces(settings),
        *_unbounded(settings),
    )
    return [f"{name}:{line_of(text, path)}: {'.'.join(path)}: {what}" for path, what in found]


def _roles_elsewhere(settings: Settings) -> Iterator[Found]:
    """A role's ids belong to one workspace: in another one no account would hold it."""
    named: list[tuple[Sequence[str], str, Sequence[str]]] = [
        (("channels", str(n), "confirm"), rule.workspace, rule.confirm)
        for n, rule in enumerate(settings.channels)
        if rule.workspace != EVERY
    ]
    named.append((("admins", "roles"), "", settings.admins.roles))
    named += [
        (("workspaces", team, "admins"), team, own.admins)
        for team, own in settings.workspaces.items()
    ]
    for path, workspace, roles in named:
        for role in roles:
            known = settings.roles.get(role)
            if known is None and path[0] == "workspaces":
                yield path, f"role {role!r} is not defined; add [roles.{role}]"
            if known is not None and known.workspace != workspace:
                whose = known.workspace or "the workspace of slack.bot_token"
                yield path, f"role {role!r} belongs to {whose}, so it has no members here"


def _unbounded(settings: Settings) -> Iterator[Found]:
    """Products of home's would be another workspace's to read for want of a line."""
    for number, rule in enumerate(settings.channels):
        if rule.workspace and not rule.products:
            yield (
                ("channels", str(number), "workspace"),
                "another workspace needs a list of products; add products",
            )


def _unknown_workspaces(settings: Settings) -> Iterator[Found]:
    allowed = settings.slack.allowed_workspaces
    known = {*settings.workspaces, *allowed, "", EVERY}
    if EVERY in allowed:
        return
    named: list[tuple[Sequence[str], str]] = [
        (("channels", str(n), "workspace"), rule.workspace)
        for n, rule in enumerate(settings.channels)
    ]
    named += [(("roles", n, "workspace"), role.workspace) for n, role in settings.roles.items()]
    named += [
        (("platform", "connections", n, "workspace"), one.workspace)
        for n, one in settings.platform.connections.items()
    ]
    for path, workspace in named:
        if workspace not in known:
            yield path, f"{workspace} may not install the app; add [workspaces.{workspace}]"
