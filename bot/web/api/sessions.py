"""Conversations over HTTP: opened, asked in, read, followed and stopped."""

import asyncio
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from bot.domain.callers import Caller
from bot.domain.chats import ChatEvent, ChatSession
from bot.domain.ids import MessageTs, turn_of
from bot.domain.session import Ask
from bot.ports.durability import StopRequests, Workflows
from bot.ports.failures import StorageUnavailable
from bot.ports.sessions import SessionStore
from bot.privacy.session_memory import Placeholders
from bot.store.chats import KeyReused, StoredChats
from bot.web.api import models
from bot.web.api.caller_permissions import CallerPermissions
from bot.web.api.callers import Denied, Rate
from bot.web.api.chat import wire
from bot.web.api.chat.opened import opened
from bot.web.api.folding import messages_of
from bot.web.api.operations import Call, Header, Operation, json_response
from bot.web.api.streams import Reader, Streams, last_event_id
from tools.redactor import Redactor

SESSION: Final = r"^s_[0-9a-f]{24}$"
MESSAGE: Final = r"^[0-9]{1,12}\.[0-9]{6}$"
_KEY: Final = r"^[\x21-\x7e]{1,128}$"
_NUMBER: Final = r"^E?[0-9]{1,4}$"
_PAGE: Final = 1_000
_MOST_EVENTS: Final = 20_000  # of one session in one answer
_MOST_CHARS: Final = 16_777_216

KEY: Final = Header(
    "Idempotency-Key",
    _KEY,
    "Your own key for the question: a repeated key is the same question, not a second one.",
)
LAST: Final = Header("Last-Event-ID", r"^[0-9]{1,18}$", "Continue after the event with this `id`.")


@dataclass(frozen=True, slots=True)
class Conversations:
    chats: StoredChats
    sessions: SessionStore
    permissions: CallerPermissions
    workflows: Workflows
    stops: StopRequests
    redactor: Redactor
    placeholders: Placeholders
    streams: Streams
    asks: Rate

    async def open(self, call: Call) -> BaseModel:
        wanted = call.given
        assert isinstance(wanted, models.NewSession)  # noqa: S101 - the operation's body
        await self.permissions.require_ask(call.caller, wanted.channel)
        owner = call.caller.person
        return session_model(await self.chats.open(wanted.channel, owner, call.caller.name))

    async def all(self, call: Call) -> BaseModel:
        """The caller's own; an admin's list has everybody's."""
        page = call.query
        assert isinstance(page, models.Page)  # noqa: S101 - the operation's query
        everybody = await self.permissions.is_admin(call.caller)
        owner = None if everybody else call.caller.person
        rows = await self.chats.newest(owner, page.limit)
        return models.Sessions(sessions=[session_model(each) for each in rows])

    async def one(self, call: Call) -> BaseModel:
        """One of them, if the caller may see it."""
        return session_model(await self._session(call))

    async def ask(self, call: Call) -> BaseModel | web.StreamResponse:
        """On record and begun before anything is answered; then its events, or its number alone."""
        wanted, session = call.given, await self._session(call)
        assert isinstance(wanted, models.NewMessage)  # noqa: S101 - the operation's body
        caller = call.caller
        if session.owner != caller.person:
            raise Denied(403, "forbidden", "Only its owner can ask in this conversation.")
        await self.permissions.require_ask(caller, session.channel)
        last_event_id(call.request)
        self.asks.take(caller.key)
        key, accepted = _key(call.request), call.request.headers.get("Accept", "")
        if "application/json" in accepted and "text/event-stream" not in accepted:
            ts = await self.asked(session, caller, wanted.text, key)
            return json_response(models.Asked(message_id=ts))
        with self.streams.open.one(caller.key):  # before: a client that must wait has not asked yet
            ts = await self.asked(session, caller, wanted.text, key)
            return await self.streams.serve(call.request, self._reader(call, session), session, ts)

    async def follow(self, call: Call) -> web.StreamResponse:
        wanted = call.query
        assert isinstance(wanted, models.StreamFrom)  # noqa: S101 - the operation's query
        session = await self._session(call)
        if wanted.message and not await self.chats.has_question(session.id, wanted.message):
            raise Denied(404, "not_found", "There is no such question in this conversation.")
        reader = self._reader(call, session)
        with self.streams.open.one(call.caller.key):
            return await self.streams.serve(call.request, reader, session, wanted.message)

    def _reader(self, call: Call, session: ChatSession) -> Reader:
        return Reader(call.caller, partial(self.permissions.may_read, call.caller, session))

    async def read(self, call: Call) -> BaseModel:
        session = await self._session(call)
        found: list[ChatEvent] = []
        after = chars = 0
        while page := await self.chats.after(session.id, after, call.caller.person, _PAGE):
            if len(found) >= _MOST_EVENTS or chars >= _MOST_CHARS:
                break
            found += page
            after = page[-1].seq
            chars += sum(len(each.data) for each in page)
        # Thousands of events take longer than the loop may wait.
        messages = await asyncio.to_thread(self._folded, session, found, after)
        return messages.model_copy(update={"goes_on": bool(page)})

    def _folded(
        self, session: ChatSession, found: Sequence[ChatEvent], last: int
    ) -> models.Messages:
        return messages_of([(each, self.streams.shown(each, session)) for each in found], last)

    async def evidence(self, call: Call) -> BaseModel:
        session, message = await self._session(call), call.path("message")
        number = int(call.path("number").removeprefix("E"))
        turn = turn_of(session.place, MessageTs(message))
        found = await self.sessions.evidence(turn, number)
        if found is None:
            raise Denied(404, "not_found", "There is no such result, or it is no longer stored.")
        asked = await self.sessions.asked(turn, found.tool_call_id)
        content = self.placeholders.resolved(found.content, session.place.key)
        return await asyncio.to_thread(opened, replace(found, content=content), asked)

    async def stop(self, call: Call) -> BaseModel:
        session = await self._session(call)
        turn = await self.sessions.running_turn(session.place)
        asked = turn is not None and await self.stops.request(turn, call.caller.person.user)
        return models.Stopped(stopping=asked)

    async def _session(self, call: Call) -> ChatSession:
        session, caller = await self.chats.get(call.path("session")), call.caller
        if session is None or not await self.permissions.may_read(caller, session):
            raise Denied(404, "not_found", "There is no such conversation of yours.")
        if session.owner != caller.person:
            await self.permissions.record(caller, f"conversation {session.id}")
        return session

    async def asked(self, session: ChatSession, caller: Caller, text: str, key: str) -> MessageTs:
        """On record and begun. Raises Denied, StorageUnavailable, RedactionFailed."""
        with self.placeholders.within(session.place.key):
            question = await asyncio.to_thread(self.redactor.redact, text.strip())
        if not question.strip():
            raise Denied(400, "invalid", "text: ask something.")
        try:
            ts = await self.chats.ask(
                session, key, question, lambda at: wire.question(at, question, caller.name)
            )
        except KeyReused as error:
            why = "This Idempotency-Key was used for another question."
            raise Denied(409, "key_reused", why) from error
        ask = Ask(session.place, ts, caller.person, question)
        try:
            if not await self.chats.is_begun(session, ts):
                await self.workflows.start_turn(ask)
        except StorageUnavailable as error:
            why = "Your question is stored but not started: send it again with the same Idempotency-Key."
            raise Denied(503, "not_started", why, 5) from error
        return ts

    def operations(self) -> Sequence[Operation]:
        """Under `/chat/v1`."""
        at, one = "/chat/v1/sessions", {"session": SESSION}
        here = f"{at}/{{session}}"
        paged, ids = models.Page, {**one, "message": MESSAGE, "number": _NUMBER}
        evidence = f"{here}/messages/{{message}}/evidence/{{number}}"
        return (
            Operation("POST", at, "openSession", "Open a conversation", models.Session, self.open, body=models.NewSession, status=201),
            Operation("GET", at, "listSessions", "Your conversations", models.Sessions, self.all, query=paged),
            Operation("GET", here, "getSession", "One conversation", models.Session, self.one, path_patterns=one),
            Operation("POST", f"{here}/messages", "ask", "Ask, and follow the answer", models.Asked, self.ask, body=models.NewMessage, streams=True, headers=(KEY, LAST), path_patterns=one),
            Operation("GET", f"{here}/messages", "readMessages", "Every question with its answer", models.Messages, self.read, path_patterns=one),
            Operation("GET", f"{here}/events", "follow", "Follow a conversation, or one answer", models.Nothing, self.follow, query=models.StreamFrom, streams=True, headers=(LAST,), path_patterns=one),
            Operation("GET", evidence, "readEvidence", "One result behind an answer", models.Evidence, self.evidence, path_patterns=ids),
            Operation("POST", f"{here}/stop", "stop", "Stop the running answer", models.Stopped, self.stop, path_patterns=one),
        )  # fmt: skip


def session_model(session: ChatSession) -> models.Session:
    """As it goes over the wire."""
    return models.Session(
        id=session.id,
        channel=session.channel,
        owner=session.owner.user,
        owner_name=session.owner_name,
        created_at=session.created_at,
        question=wire.first_question(session.question),
    )


def _key(request: web.Request) -> str:
    given = request.headers.get(KEY.name)
    if given is None:
        return secrets.token_hex(16)
    if not re.fullmatch(_KEY, given):
        raise Denied(400, "invalid", "Idempotency-Key: 1 to 128 printable ASCII characters.")
    return given
