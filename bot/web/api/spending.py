"""Who spent what, by the names that people know: beside each id what it is called, and where a thread is."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from bot.chat.budget_report import BudgetReport
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId, place_of
from bot.ports.ledger import SpentBy
from bot.web.api.naming import Naming, called


async def budget_model(report: BudgetReport, naming: Naming) -> dict[str, JsonValue]:
    """The report as JSON; each row of `by` has a `label`, of a session `thread` and `thread_url` as well.

    Raises StorageUnavailable.
    """
    known, told = await labels(report, naming), report.as_json()
    told["by"] = {
        group: [
            {**row.as_json(), "label": known[group].get(row.name, row.name)}
            | (_thread(row.name, naming) if group == "session" else {})
            for row in rows
        ]
        for group, rows in report.by.items()
    }
    return told


async def labels(report: BudgetReport, naming: Naming) -> Mapping[str, Mapping[str, str]]:
    """By group and id, the names that differ from the id. Raises StorageUnavailable."""
    places = _places(report.by["session"])
    channels = await naming.channels(places.values())
    return {
        "user": _unique_names(await naming.people(row.name for row in report.by["user"])),
        "channel": _channels(report.by["channel"], channels),
        "session": {session: channels[place] for session, place in places.items()},
        "provider": {},
    }


def _unique_names(names: Mapping[str, str]) -> Mapping[str, str]:
    times = Counter(names.values())
    return {user: f"{name} ({user})" if times[name] > 1 else name for user, name in names.items()}


def _places(rows: Sequence[SpentBy]) -> Mapping[str, Place]:
    found = {row.name: place_of(row.name) for row in rows}
    return {session: place for session, place in found.items() if place is not None}


def _channels(rows: Sequence[SpentBy], names: Mapping[Place, str]) -> Mapping[str, str]:
    """Spending has a channel's name as it was then, and its id where it had none."""
    by_id = {place.channel: name for place, name in names.items()}
    return {row.name: by_id.get(ChannelId(row.name)) or _by_name(row.name) for row in rows}


def _by_name(name: str) -> str:
    return called(name, Place(TeamId(""), ChannelId(name), MessageTs("")))


def _thread(session: str, naming: Naming) -> dict[str, JsonValue]:
    place = place_of(session)
    if place is None:
        return {"thread": "", "thread_url": ""}
    return {"thread": place.thread_ts, "thread_url": naming.link(place, place.thread_ts)}
