"""The canonical conversation of every model backend, in our own terms.

Values only. Wire formats are in each provider's package; storage is in `bot.store`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from adapters.fault import Fault

# Added to a round's warnings when a provider emulates tools in text (adapters.llm.pseudo_tools).
TOOLS_EMULATED: Final = (
    "This model has no native tools; they are emulated in its text, which is less reliable."
)


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class StopReason(StrEnum):
    """Why a model stopped."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    ERROR = "error"


class ErrorKind(StrEnum):
    """A provider's kind of failure; decides failover and the message to users."""

    RATE_LIMITED = "rate_limited"  # 429: the pool cools down by its own Retry-After
    QUOTA = "quota"  # money or plan is used up: never retried
    OVERLOADED = "overloaded"  # 529, 503
    UNREACHABLE = "unreachable"  # no connection, DNS, TLS
    TIMEOUT = "timeout"
    AUTH = "auth"  # 401, 403
    BAD_REQUEST = "bad_request"  # 400, 404: our request does not fit the model
    CONTEXT_OVERFLOW = "context_overflow"
    REFUSED = "refused"  # the model or its filter declined
    CUT = "cut"  # the stream ended without its terminal event
    PROTOCOL = "protocol"  # bytes that do not fit the wire
    UNAVAILABLE = "unavailable"  # not configured, reserved


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it.

    `name` is the namespaced id; `input_schema` a portable JSON Schema.
    """

    name: str
    description: str
    input_schema: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request for a tool. `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call. `content` is JSON text."""

    call_id: str
    name: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """An image beside a person's words. `data` is Base64, for the request alone: it is never
    stored.

    Without data, `why_not` gives the reason why it cannot be viewed.
    """

    name: str
    media: str = ""  # image/png, image/jpeg, image/gif, image/webp
    data: str = field(default="", repr=False)
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation.

    `tool_calls` only on assistant messages, `tool_result` only on tool messages. `provider_blocks`
    are vendor-native blocks (JSON text) that must be replayed unchanged to the same `provider`,
    such as signed thinking. `told` is context for the model beside a person's words, such as their
    time; it stays with them. `images` belong to the newest question only, and go to models that
    see.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None
    provider: str = ""
    provider_blocks: tuple[str, ...] = ()
    told: str = ""
    images: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Meta:
    """Metadata of a request, never sent as content; `products` are the channel's products.

    `now` is the moment of the question, None without a clock. `elsewhere` are the products of other
    channels: for recognizing a name, never to be shown. `reads_all`: tools may read those too.
    `tables` are the settings tables of backends chosen by name, by family ("metrics",
    "observe.metrics.eu"); other families use their own table. `actions` are the declared actions'
    names.
    """

    session_id: str = ""
    user_id: str = ""
    purpose: str = "investigate"
    products: tuple[str, ...] = ()
    now: datetime | None = None
    elsewhere: tuple[str, ...] = ()
    reads_all: bool = False
    tables: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """One round. `model` empty means the provider's configured model.

    The first `system_stable_chars` of `system` are the same in every turn, for the provider's
    cache. `require_tool`: the answer should begin with a call, if the wire can express it.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_tokens: int = 4096
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    system_stable_chars: int = 0
    require_tool: bool = False
    meta: Meta = field(default_factory=Meta)


@dataclass(frozen=True, slots=True)
class Usage:
    """Billed tokens in disjoint buckets (`output` includes reasoning)."""

    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        return self.input_uncached + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_uncached + other.input_uncached,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """One whole call, assembled by the decoder."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class DoneChunk:
    """The one successful end of a stream.

    `usage_known` is False when the backend reported no usage: then `usage` is all zeros and means
    nothing. `at_list_price` is False when it was billed otherwise: by another service tier, an
    hour's cache, tools that the vendor ran. `warnings` are sentences for people, such as tools
    being emulated.
    """

    stop_reason: StopReason
    usage: Usage
    model: str
    provider_blocks: tuple[str, ...] = ()
    usage_known: bool = True
    warnings: tuple[str, ...] = ()
    at_list_price: bool = True


@dataclass(frozen=True, slots=True)
class ErrorChunk:
    """The one failed end of a stream. `message` holds no secret and may be shown to operators.

    `should_retry` is the backend's own value (`x-should-retry`) and outranks `kind`. `usage` is the
    usage billed until the failure, if reported. `began`: an answer had begun, so at least the input
    is billed. `fault` is the network fault.
    """

    kind: ErrorKind
    message: str
    retry_after_s: float | None = None
    status: int | None = None
    should_retry: bool | None = None
    usage: Usage | None = None
    began: bool = False
    fault: Fault | None = None


StreamChunk = TextChunk | ToolCallChunk | DoneChunk | ErrorChunk
