"""A process that writes rows of the audit log until it is killed; prints each number once committed."""

import asyncio
import sys

from bot.audit.chain import AuditKeys
from bot.domain.audit import AuditEvent, AuditKind
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.sealing import Sealing
from tests.held_connection import writing


async def main(url: str, name: str, count: int) -> None:
    sealing = Sealing(AuditKeys("1", {"1": b"a" * 32}))
    database = await Database.open(url, sealing=sealing)
    for n in range(count):
        async with writing(database) as connection:
            event = AuditEvent(AuditKind.TOOL_CALL, name, {"n": n}, key=f"{name}:{n}")
            seq = await append_audit(connection, event)
        sys.stdout.write(f"{seq}\n")
        sys.stdout.flush()
    await database.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
