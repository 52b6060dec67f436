"""The engine's records, from outside of a running engine: end unfinished work, delete, and find."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import sqlalchemy as sa
from dbos import DBOSClient, DBOSPortableJSONSerializer

from bot.engine.dbos_setup import engine_arguments
from bot.store.dialect import storage_errors
from bot.store.incident_rows import texts_in
from bot.store.tickets import ALIVE

_AT_ONCE: Final = 500
_T = TypeVar("_T")


class EngineRecords:
    """Those in one database. Every method raises StorageUnavailable.

    `url` as the engine wants it (a synchronous driver). `pgbouncer`: see `EngineConfig`.
    """

    def __init__(self, url: str, *, pgbouncer: bool = False) -> None:
        self._url = url
        self._pgbouncer = pgbouncer

    async def end_unfinished(self) -> int:
        """Cancel the unfinished work; the number cancelled. Only while no replica serves."""

        def work(client: DBOSClient) -> int:
            alive = client.list_workflows(status=[*ALIVE], load_input=False, load_output=False)
            if alive:
                client.cancel_workflows([each.workflow_id for each in alive])
            return len(alive)

        return await self._do(work, 0)

    async def delete(self, workflows: Collection[str]) -> int:
        """Delete finished ones, with their steps; the number deleted."""

        def work(client: DBOSClient) -> int:
            deleted, wanted = 0, sorted(workflows)
            for first in range(0, len(wanted), _AT_ONCE):
                some = client.list_workflows(
                    workflow_ids=wanted[first : first + _AT_ONCE],
                    load_input=False,
                    load_output=False,
                )
                ended = [each.workflow_id for each in some if each.status not in ALIVE]
                client.delete_workflows(ended)
                deleted += len(ended)
            return deleted

        return await self._do(work, 0)

    async def naming(
        self, names: frozenset[str], user: str = "", others: Collection[str] = ()
    ) -> Sequence[str]:
        """The ids of workflows with such a name, or with one of the names in their input; reads
        them all.

        Also those with `user` in their input, unless their name or input holds one of the `others`.
        """
        strange = frozenset(others)

        def wanted(workflow_id: str, given: object) -> bool:
            texts = {workflow_id, *texts_in(given)}
            if not names.isdisjoint(texts):
                return True
            return bool(user) and user in texts and strange.isdisjoint(texts)

        def work(client: DBOSClient) -> Sequence[str]:
            found: list[str] = []
            for offset in range(0, 2**31, _AT_ONCE):
                page = client.list_workflows(limit=_AT_ONCE, offset=offset, load_output=False)
                found += [each.workflow_id for each in page if wanted(each.workflow_id, each.input)]
                if len(page) < _AT_ONCE:
                    break
            return found

        return await self._do(work, ())

    async def _do(self, work: Callable[[DBOSClient], _T], nothing: _T) -> _T:
        def connected() -> _T:
            with storage_errors(), self._client() as client:
                return nothing if client is None else work(client)

        return await asyncio.to_thread(connected)

    @contextmanager
    def _client(self) -> Iterator[DBOSClient | None]:
        is_sqlite = self._url.startswith("sqlite")
        options = engine_arguments(self._url, pgbouncer=self._pgbouncer)
        engine = sa.create_engine(self._url, hide_parameters=True, **options)
        try:
            schema = None if is_sqlite else "dbos"
            if not sa.inspect(engine).has_table("workflow_status", schema=schema):
                yield None
                return
            client = DBOSClient(
                system_database_engine=engine,
                serializer=DBOSPortableJSONSerializer(),
                retry_connection_errors=False,
            )
            try:
                yield client
            finally:
                client.destroy()
        finally:
            engine.dispose()
