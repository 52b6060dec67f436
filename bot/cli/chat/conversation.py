"""A conversation in the terminal: questions, slash commands, and decisions of the person here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from adapters.errors import AdapterError
from bot.cli.chat.client import ChatClient, ChatFailed, Lost
from bot.cli.chat.screen import Screen
from bot.web.api import models

HELP: Final = """\
  /evidence N         the result behind [EN] of the last answer
  /proposals          your open proposals
  /proposal ID        one proposal and its result
  /confirm ID         show a proposal in full, then confirm it
  /reject ID REASON   reject it; the reason goes back to the model
  /sessions           your conversations; /session ID continues one, /new starts one
  /stop               end the running answer (or Ctrl-C; twice leaves)
  /quit               leave; running answers continue"""
_ID_CHARS: Final = 4  # of a proposal's id, typed to confirm it

# The next line that was typed, "" at a prompt of ours that was left, None at the end of the input.
ReadLine = Callable[[str], Awaitable[str | None]]


@dataclass(slots=True)
class TerminalConversation:
    """One person's. `failed` says afterwards that a question got no answer."""

    client: ChatClient
    screen: Screen
    read: ReadLine
    channel: str
    session: str = ""
    failed: bool = False
    _message: str = ""
    _answering: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while (line := await self.read("> ")) is not None:
            if line.strip() == "/quit":
                return
            await self.turn(line.strip())

    async def turn(self, line: str) -> None:
        """Handle one line, a command or a question. An error is printed, and the conversation goes on."""
        if not line:
            return
        try:
            await (self._command(line) if line.startswith("/") else self._ask(line))
        except (ChatFailed, AdapterError) as error:
            self.failed |= not line.startswith("/")
            self.screen.warn(str(error))

    async def interrupt(self) -> bool:
        """Handle Ctrl-C: end the running answer. Returns False when no answer runs."""
        if self._answering is None or not self.session:
            return False
        self.screen.note("stopping ... (Ctrl-C again leaves)")
        try:
            return await self.client.stop(self.session)
        except (ChatFailed, AdapterError) as error:
            self.screen.warn(str(error))
            return False

    async def _ask(self, question: str) -> None:
        if not self.session:
            self.session = (await self.client.open(self.channel)).id
        self._answering = asyncio.current_task()
        raised: list[str] = []
        try:
            async for event in self.client.ask(self.session, question):
                match event:
                    case Lost():
                        self.screen.note(f"({event.why}; reconnecting)")
                    case models.NoticeEvent() if not event.message_id:
                        self.screen.note(event.text)
                    case _:
                        self._message = event.message_id
                        self.screen.event(event)
                if isinstance(event, models.ProposalEvent):
                    raised.append(event.proposal_id)
        finally:
            self._answering = None
        for proposal in dict.fromkeys(raised):
            self.screen.proposal(await self.client.proposal(proposal))
            self.screen.line(f"Decide with /confirm {proposal} or /reject {proposal}.")

    async def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        known: Mapping[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/evidence": self._evidence,
            "/proposals": self._proposals,
            "/proposal": self._proposal,
            "/confirm": self._confirm,
            "/reject": self._reject,
            "/sessions": self._sessions,
            "/session": self._go_on,
            "/new": self._new,
            "/stop": self._stop,
        }
        if name not in known:
            self.screen.line(f"There is no {name[:40]!r}. Commands:")
            name = "/help"
        await known[name](rest.strip())

    async def _help(self, _rest: str) -> None:
        self.screen.line(HELP)

    async def _evidence(self, rest: str) -> None:
        number = rest.strip("[] ").upper().removeprefix("E")  # also as the answer shows it
        if self.session and not self._message:  # gone on with from the command line
            told = (await self.client.messages(self.session)).messages
            self._message = told[-1].id if told else ""
        if not (self.session and self._message):
            self.screen.line("Ask something first.")
        elif number.isascii() and number.isdigit() and len(number) <= 4:
            found = await self.client.evidence(self.session, self._message, int(number))
            self.screen.evidence(found)
        else:
            self.screen.line("Which one? /evidence 1")

    async def _proposals(self, _rest: str) -> None:
        rows = (await self.client.proposals()).proposals
        for row in rows:
            self.screen.proposal(row)
        if not rows:
            self.screen.line("You have no open proposals.")

    async def _proposal(self, rest: str) -> None:
        if rest:
            self.screen.proposal(await self.client.proposal(rest))
        else:
            self.screen.line("Which one? /proposal ID; /proposals lists the open ones")

    async def _confirm(self, rest: str) -> None:
        if not rest:
            self.screen.line("Which one? /confirm ID; /proposals lists the ids")
            return
        row = await self.client.proposal(rest)
        self.screen.proposal(row)
        if row.state != "pending":
            self.screen.line(f"It is {row.status or row.state}, so it cannot be decided.")
            return
        left_s = (row.expires_at - datetime.now(UTC)).total_seconds()
        word = row.id[-_ID_CHARS:]
        self.screen.line(f"It expires in {max(0, round(left_s))} s.")
        typed = await self.read(f"Type {word} to confirm and run it, anything else to cancel: ")
        if (typed or "").strip() != word:
            self.screen.line("Nothing was changed.")
            return
        await self._decide(row.id, "confirm")

    async def _reject(self, rest: str) -> None:
        proposal, _, reason = rest.partition(" ")
        if not proposal:
            self.screen.line("Which one? /reject ID REASON; /proposals lists the ids")
            return
        await self._decide(proposal, "reject", reason.strip())

    async def _decide(
        self, proposal: str, how: Literal["confirm", "reject"], reason: str = ""
    ) -> None:
        decided = await self.client.decide(proposal, how, reason)
        self.screen.warn(decided.message)
        ends = "" if how == "reject" else f" /proposal {proposal} shows its result."
        self.screen.line(f"Now: {decided.proposal.status or decided.proposal.state}.{ends}")

    async def _sessions(self, _rest: str) -> None:
        for each in (await self.client.sessions()).sessions:
            here = "  (this one)" if each.id == self.session else ""
            self.screen.line(
                f"{each.id}  {each.created_at:%Y-%m-%d %H:%M} UTC  #{each.channel}{here}"
            )

    async def _go_on(self, rest: str) -> None:
        if not rest:
            self.screen.line("Which one? /session ID; /sessions lists the ids")
            return
        told = await self.client.messages(rest)
        self.session, self._message = rest, told.messages[-1].id if told.messages else ""
        for message in told.messages:
            self.screen.answered(message)

    async def _new(self, _rest: str) -> None:
        self.session, self._message = "", ""
        self.screen.line("The next question starts a new conversation.")

    async def _stop(self, _rest: str) -> None:
        if not self.session or not await self.client.stop(self.session):
            self.screen.line("No answer is running.")
