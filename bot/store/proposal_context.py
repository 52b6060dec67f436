"""The proposals shown beside a question.

Of its thread, of its channel, and those sent recently in other conversations of the tenant.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.ids import Place, SessionId, session_at
from bot.domain.proposal import Proposal, ProposalState, refused_by
from bot.domain.tenancy import is_shared
from bot.ports.proposals import Around
from bot.store.columns import CleanText
from bot.store.dialect import ago, seconds_ago
from bot.store.duplicate_orders import of_one_tenant
from bot.store.proposal_rows import proposal_of
from bot.store.tables import proposals

_WENT_OUT: Final = tuple(
    state.value
    for state in (
        ProposalState.DISPATCHING,
        ProposalState.SUCCEEDED,
        ProposalState.FAILED,
        ProposalState.UNKNOWN,
    )
)
_ANY: Final = sa.select(proposals).where(
    # Its index ends at the recent ones, for any number of older ones.
    proposals.c.dispatched_at > ago("ago_us"),
    proposals.c.session_id != sa.bindparam("session"),
    proposals.c.state.in_(_WENT_OUT),
    of_one_tenant(sa.bindparam("team", type_=CleanText())),
)
_FOR_ANY: Final = _ANY
_FOR_PRODUCTS: Final = _ANY.where(proposals.c.product.in_(sa.bindparam("products", expanding=True)))


_ALL_OF_SESSION = (
    sa.select(proposals)
    .where(proposals.c.session_id == sa.bindparam("session"))
    .order_by(proposals.c.created_at, proposals.c.id)
)
_OF_SESSION: Final = _ALL_OF_SESSION
_OF_SESSION_IN_STATE: Final = _ALL_OF_SESSION.where(proposals.c.state == sa.bindparam("state"))
_ELSEWHERE: Final = sa.select(proposals).where(
    proposals.c.session_id >= sa.bindparam("first"),
    proposals.c.session_id < sa.bindparam("end"),
    proposals.c.session_id != sa.bindparam("this"),
    proposals.c.created_at > ago("ago_us"),
    proposals.c.state.not_in([ProposalState.EXPIRED.value, ProposalState.SUPERSEDED.value]),
    (proposals.c.state != ProposalState.PENDING.value) | (proposals.c.expires_at > seconds_ago(0)),
)


def _which(went_out: sa.Select[Any]) -> sa.Select[Any]:
    kinds = (_OF_SESSION, _ELSEWHERE, went_out)
    found: list[Any] = [kind.with_only_columns(sa.literal(1)).exists() for kind in kinds]
    return sa.select(*found)


_WHICH: Final = _which(_FOR_ANY)
_WHICH_FOR_PRODUCTS: Final = _which(_FOR_PRODUCTS)


async def around(
    connection: AsyncConnection,
    session: SessionId,
    place: Place,
    products: Collection[str] | None,
    seconds: float,
    limit: int,
) -> Around:
    wanted = _of_channel(place, seconds) | {"session": session, "team": place.team}
    if products is None:
        which = await connection.execute(_WHICH, wanted)
    else:
        which = await connection.execute(_WHICH_FOR_PRODUCTS, wanted | {"products": [*products]})
    has_own, has_in_threads, has_others = which.one()
    return Around(
        await of_session(connection, session, None) if has_own else (),
        (await in_threads(connection, place, seconds) if has_in_threads else ())[-limit:],
        await carried_out_elsewhere(connection, place, products, seconds, limit)
        if has_others
        else (),
    )


async def of_session(
    connection: AsyncConnection, session: SessionId, state: ProposalState | None
) -> Sequence[Proposal]:
    if state is None:
        found = await connection.execute(_OF_SESSION, {"session": session})
    else:
        wanted = {"session": session, "state": state.value}
        found = await connection.execute(_OF_SESSION_IN_STATE, wanted)
    return [proposal_of(row) for row in found]


async def in_threads(
    connection: AsyncConnection, place: Place, seconds: float
) -> Sequence[Proposal]:
    """See `Around.threads`. By their sessions' ids, which name the channel: a range of the index."""
    if not is_shared(place.team):
        return ()
    found = await connection.execute(_ELSEWHERE, _of_channel(place, seconds))
    rows = [proposal_of(row) for row in found]
    return sorted(rows, key=lambda row: (row.created_at, row.id))


def _of_channel(place: Place, seconds: float) -> dict[str, object]:
    channel = f"session:{place.team}:{place.channel}"
    # ";" comes after ":".
    of_channel = {"first": f"{channel}:", "end": f"{channel};", "this": session_at(place)}
    return of_channel | {"ago_us": round(seconds * 1e6)}


async def carried_out_elsewhere(
    connection: AsyncConnection,
    place: Place,
    products: Collection[str] | None,
    seconds: float,
    limit: int,
) -> Sequence[Proposal]:
    """See `Around.others`. By an index of sent orders."""
    wanted = {"session": session_at(place), "team": place.team, "ago_us": round(seconds * 1e6)}
    if products is None:
        found = await connection.execute(_FOR_ANY, wanted)
    else:
        found = await connection.execute(_FOR_PRODUCTS, wanted | {"products": [*products]})
    rows = sorted(found, key=lambda row: (row.dispatched_at, row.id))
    # A guard's last no came before anything was sent.
    went_out = [each for row in rows if not refused_by(each := proposal_of(row))]
    return [each for each in went_out if not _is_in_channel(each, place)][-limit:]


def _is_in_channel(row: Proposal, place: Place) -> bool:
    same = (row.place.team, row.place.channel) == (place.team, place.channel)
    return same and is_shared(place.team)
