"""What goes over the wire, as pydantic models: the OpenAPI document is made from them, clients read by them.

Nothing heavy is imported here, for `kortex chat` begins with it. Clients ignore what they do not know.
"""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from bot.domain.chats import ChatEventKind

MOST_CHARS: Final = 40_000  # of a question; as Slack takes in one message
MOST_REASON_CHARS: Final = 500
CHANNEL: Final = r"^\w[\w.-]*$"
JsonObject: TypeAlias = dict[str, JsonValue]


class Wire(BaseModel):
    model_config = ConfigDict(defer_build=True)  # 9 MB of validators wait for the first caller


class Request(Wire):
    """A body. Unknown keys are refused: a misspelt one would silently mean nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ApiResponse(Wire):
    """An answer, or an event of a stream."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class NewSession(Request):
    """Open a conversation. `channel` is the name that `[[channels]]` match."""

    channel: Annotated[str, Field(pattern=CHANNEL, max_length=80, examples=["incident-checkout"])]


class NewMessage(Request):
    """A question, as it would be typed in a thread."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS, examples=["why is it slow?"])]


class NewDecision(Request):
    """Decide on a proposal. The `reason` of a rejection is stored, and shown to the model."""

    reason: Annotated[str, Field(max_length=MOST_REASON_CHARS)] = ""


class ErrorDetail(ApiResponse):
    """`code` is stable; `message` says what happened, what was kept and what to do."""

    code: str
    message: str


class Error(ApiResponse):
    """The answer to a request that was refused or failed."""

    error: ErrorDetail


class Me(ApiResponse):
    """Who the caller is. `roles` are those of `[roles]` that are held now."""

    user: str
    team: str
    name: str
    kind: Literal["person", "service"]
    roles: list[str]
    is_admin: bool


class Session(ApiResponse):
    """One conversation and its owner. A list also has the beginning of its first question."""

    id: str
    channel: str
    owner: str
    owner_name: str
    created_at: datetime
    question: str = ""


class Sessions(ApiResponse):
    """The newest first."""

    sessions: list[Session]


_OLDER_STATES: Final = {"unsupported": "contradicted", "attached": "unchecked"}


def _state_of_an_older_record(state: object) -> object:
    return _OLDER_STATES.get(state, state) if isinstance(state, str) else state


class Claim(ApiResponse):
    """One sentence of an answer, and whether the cited evidence supports it."""

    text: str
    evidence: list[str]
    state: Annotated[
        Literal["supported", "contradicted", "unchecked"],
        BeforeValidator(_state_of_an_older_record),
    ]
    note: str = ""


class EvidenceLine(ApiResponse):
    """One numbered result. Its content is read by number."""

    number: str
    tool_call_id: str
    tool: str
    summary: str
    ok: bool
    latency_ms: int
    truncated: bool


class ChartLine(ApiResponse):
    """One series; its values belong to `at` of the chart."""

    name: str
    values: list[float]


class Chart(ApiResponse):
    """A picture of points that the result holds. `usual` is its baseline's median, `since` the onset."""

    product: str
    metric: str
    unit: str
    at: list[datetime]
    lines: list[ChartLine]
    usual: float | None
    since: datetime | None


class Table(ApiResponse):
    """Rows of the result; each has a cell for every head."""

    heads: list[str]
    rows: list[list[float | str]]


class Evidence(EvidenceLine):
    """One numbered result, whole: `content` is the redacted JSON the model was given.

    `asked` is the query, `charts` and `table` what of the result can be drawn.
    """

    content: str
    asked: str = ""
    charts: list[Chart] = []
    table: Table | None = None


class Usage(ApiResponse):
    """Tokens of all rounds; the input is the sum of the uncached, the read and the written."""

    input_tokens: int
    input_uncached_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int


class QuestionEvent(ApiResponse):
    """A question. `message_id` numbers the questions of a session; later ones are greater."""

    message_id: str
    text: str
    asker: str


class TextEvent(ApiResponse):
    """A piece of the answer, to be appended."""

    message_id: str
    text: str


class ResetEvent(ApiResponse):
    """All text of that answer so far is void; this replaces it."""

    message_id: str
    text: str


class ToolStartEvent(ApiResponse):
    """A tool call passed every check and runs."""

    message_id: str
    tool_call_id: str
    tool: str
    arguments: JsonObject


class ToolEndEvent(ApiResponse):
    """A tool call ended. `evidence` is the number of its citations in the answer."""

    message_id: str
    tool_call_id: str
    tool: str
    ok: bool
    evidence: str | None
    summary: str
    latency_ms: int
    truncated: bool
    error_code: str | None
    message: str


class NoticeEvent(ApiResponse):
    """Something people should know. Without a `message_id` it is of the session: how an action ended."""

    message_id: str
    text: str


class ProposalEvent(ApiResponse):
    """A proposal was raised or changed its state; read it by its id.

    `status` is its state in words, `effect` its effect in one line.
    """

    message_id: str
    proposal_id: str
    state: str
    status: str = ""
    effect: str = ""
    action: str
    product: str


class ClaimsEvent(ApiResponse):
    """What the answer claims, sentence by sentence; before `done`."""

    message_id: str
    claims: list[Claim]


class DoneEvent(ApiResponse):
    """The end of an answer, with the whole text: the streamed text is only a preview of it.

    `screen` is what of it fits a phone: a headline and at most five lines; empty: all of it. `more`
    is how many lines that leaves out.
    """

    message_id: str
    end: str
    text: str
    provider: str
    model: str
    rounds: int
    usage: Usage
    cost_usd_micros: int | None
    notices: list[str]
    evidence: list[EvidenceLine]
    verdict: str
    suspects: list[JsonValue]
    coverage: JsonValue
    screen: str = ""
    more: int = 0


Event: TypeAlias = (
    QuestionEvent
    | TextEvent
    | ResetEvent
    | ToolStartEvent
    | ToolEndEvent
    | NoticeEvent
    | ProposalEvent
    | ClaimsEvent
    | DoneEvent
)

# By the `event:` line of a stream, with the model's JSON in its `data:` line.
EVENTS: Final[dict[ChatEventKind, type[Event]]] = {
    ChatEventKind.QUESTION: QuestionEvent,
    ChatEventKind.TEXT: TextEvent,
    ChatEventKind.RESET: ResetEvent,
    ChatEventKind.TOOL_START: ToolStartEvent,
    ChatEventKind.TOOL_END: ToolEndEvent,
    ChatEventKind.NOTICE: NoticeEvent,
    ChatEventKind.PROPOSAL: ProposalEvent,
    ChatEventKind.CLAIMS: ClaimsEvent,
    ChatEventKind.DONE: DoneEvent,
}


class Message(ApiResponse):
    """One question and its answer, as far as it has come. `done` is there at its end."""

    id: str
    asked_at: datetime
    asker: str
    question: str
    text: str
    tools: list[ToolEndEvent]
    notices: list[str]
    proposals: list[str]
    claims: list[Claim]
    done: DoneEvent | None


class Messages(ApiResponse):
    """Oldest first. `last_event_id` is where a stream goes on; `notices` are of the session.

    `goes_on`: the conversation is longer than one answer; follow its events from `last_event_id`.
    """

    messages: list[Message]
    notices: list[str]
    last_event_id: int
    goes_on: bool = False


class Asked(ApiResponse):
    """A question that was taken: it is answered whether anybody reads on or not."""

    message_id: str


class Stopped(ApiResponse):
    """`stopping`: a running answer was asked to end; it ends with its findings so far."""

    stopping: bool


class AsStored(ApiResponse):
    """JSON as it is stored, and as it runs: for readers with 53-bit numbers. Empty: no value."""

    params: str
    dry_run: str
    outcome: str


class Proposal(ApiResponse):
    """What a card shows: all that would run. `touches` are names of what it would touch.

    `channel` and the names are those of the chat platform, or ids if unknown; `thread_url` opens
    the thread on it, or is empty. `effect` is its effect in one line. `arguments` and `preview` are
    `params` and `dry_run` as names and values, whole; null if they are not such a list. `status` is
    its state in words. `warning`
    is set for an open proposal: its version was rolled back, or a person wrote it and it was never
    deployed.
    """

    id: str
    session_id: str
    channel: str = ""
    thread_url: str = ""
    state: str
    status: str = ""
    effect: str = ""
    arguments: list[tuple[str, str]] | None = None
    preview: list[tuple[str, str]] | None = None
    action: str
    product: str
    params: JsonValue
    rationale: str
    blast_radius: str
    model_blast_radius: str
    reversible: bool
    untrusted_read: bool
    warning: str = ""
    dry_run: JsonValue
    touches: list[str]
    asked_by: str
    asked_by_name: str = ""
    may_confirm: list[str]
    must_also_hold: list[str]
    four_eyes: bool
    approvals: int
    confirmed_by: list[str]
    decided_by: str | None
    decided_by_name: str = ""
    decided_at: datetime | None
    reason: str
    outcome: JsonValue
    as_stored: AsStored | None = None
    created_at: datetime
    expires_at: datetime


class Proposals(ApiResponse):
    """The open ones that the caller may see, the one that expires first at the top."""

    proposals: list[Proposal]


class Decided(ApiResponse):
    """`counted`: a confirmation was counted, and more people have to give theirs.

    `lost`: it was decided before, or expired. `pending`: it is on record and will be carried out.
    """

    result: Literal["won", "counted", "lost", "pending"]
    message: str
    proposal: Proposal


class Talk(ApiResponse):
    """A conversation on any platform. `asker` asked last in it. Names are ids where they are not known."""

    team: str
    channel: str
    channel_name: str
    thread: str
    thread_url: str
    asker: str
    asker_name: str
    questions: int
    active_at: datetime


class UnderWay(ApiResponse):
    """A question that is being answered; a waiting one has neither `asker` nor `since`."""

    team: str
    channel: str
    channel_name: str
    thread: str
    thread_url: str
    asker: str | None
    asker_name: str
    since: datetime | None


class Overview(ApiResponse):
    """What goes on everywhere: the newest conversations first, of answers the oldest."""

    sessions: list[Talk]
    under_way: list[UnderWay]


class Providers(ApiResponse):
    """The state of each model backend."""

    providers: list[JsonObject]


class Tools(ApiResponse, extra="allow"):
    """Every tool, its toolsets and how its calls went."""


class Budget(ApiResponse, extra="allow"):
    """Today's spending (UTC), in micro-dollars, and a forecast for the day."""


class AuditEntries(ApiResponse):
    """Rows of the audit log in order. Go on with `after` = `last_seq`."""

    entries: list[JsonObject]
    last_seq: int


class Page(Wire):
    """How much of a list."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50


class AuditPage(Wire):
    """Which rows of the audit log: beyond `after`, of one session if it is named."""

    after: Annotated[int, Field(ge=0, le=2**62)] = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100
    session: Annotated[str, Field(max_length=300)] = ""


class StreamFrom(Wire):
    """Of one question's answer alone, if it is named; a stream of that ends with the answer."""

    message: Annotated[str, Field(max_length=40, pattern=r"^[0-9.]*$")] = ""


class Nothing(Wire):
    """Where nothing is asked for beside the path."""


class AuditState(ApiResponse):
    """Whether the chain holds, as it was verified at `at`."""

    ok: bool
    rows: int
    head: str
    first_bad_seq: int | None
    reason: str
    erased: int
    unkeyed: int
    sealed: int
    at: datetime
