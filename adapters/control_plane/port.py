"""What the product asks of a control plane, what it may answer, and URLs with holes. No I/O here.

No filling of `{product}` or `{params.NAME}` can make a URL point elsewhere. The HTTP implementation
is `adapters.control_plane.client`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, assert_never
from urllib.parse import quote, urlsplit

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Reads:
    """Where an action's target may be read before anybody confirmed, with a credential of its own.

    URLs may hold `{product}` and `{params.NAME}`; an empty one is not asked. `fingerprint_fields`
    are dotted paths into the answer; empty means the usual ones. `timeout_s` bounds one exchange.
    """

    credential_id: str = ""
    count_url: str = ""
    fingerprint_url: str = ""
    fingerprint_fields: tuple[str, ...] = ()
    timeout_s: float = 5.0


class ExecutorKind(StrEnum):
    CONTROL_PLANE = "control_plane"
    GITHUB = "github"  # a workflow of GitHub Actions; the URL is the workflow's
    GITLAB = "gitlab"  # a pipeline of GitLab CI; the URL is the project's
    REHEARSAL = "rehearsal"  # nothing: the order is shown, never sent


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one action is carried out. `{product}` in a URL is replaced by the product.

    `credential_id` names a credential; its value is known to the adapter alone. `status_url`
    empty means that a control plane cannot be asked for a lost answer. `ref` is the branch or tag
    of a workflow or pipeline. `timeout_s` bounds one whole exchange.
    """

    url: str
    method: str = "POST"
    credential_id: str = ""
    status_url: str = ""
    timeout_s: float = 30.0
    reads: Reads = field(default_factory=Reads)
    kind: ExecutorKind = ExecutorKind.CONTROL_PLANE
    ref: str = ""

    @property
    def can_be_asked(self) -> bool:
        return self.kind is not ExecutorKind.CONTROL_PLANE or bool(self.status_url)


@dataclass(frozen=True, slots=True)
class ControlOrder:
    """One confirmed action. `idempotency_key` is the proposal's id."""

    endpoint: Endpoint
    idempotency_key: str
    action: str
    product: str
    params: Mapping[str, JsonValue]
    confirmed_by: str
    dry_run: bool = False


def where_to_look(order: ControlOrder) -> str:
    """Where a person sees what became of an order."""
    endpoint, key = order.endpoint, order.idempotency_key
    match endpoint.kind:
        case ExecutorKind.CONTROL_PLANE if endpoint.status_url:
            return f"{endpoint.status_url} with idempotency_key={key}"
        case ExecutorKind.CONTROL_PLANE:
            return f"the control plane behind {endpoint.url}, for the key {key}"
        case ExecutorKind.GITHUB:
            return f"the runs of {endpoint.url}, for one named {key}"
        case ExecutorKind.GITLAB:
            return f"the pipelines of {endpoint.url}, for one named {key}"
        case ExecutorKind.REHEARSAL:
            return "nothing: a rehearsal sends nothing"
        case _:
            assert_never(endpoint.kind)


class AnswerKind(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the control plane said no
    NOT_SENT = "not_sent"  # no byte of the order left; nothing can have happened
    LOST = "lost"  # it may or may not have happened
    RUNNING = "running"  # the control plane has it and is not done


@dataclass(frozen=True, slots=True)
class ControlAnswer:
    """`words` are for people and hold no secret; `body` is the answer as received, not redacted."""

    kind: AnswerKind
    words: str
    status: int | None = None
    body: JsonValue = None


class ControlPlane(Protocol):
    """Carries out confirmed actions. Neither call raises anything but CancelledError.

    `ask` after a RUNNING answer may say LOST for a moment, where a run is listed late.
    """

    async def send(self, order: ControlOrder) -> ControlAnswer:
        """Send the order once; never repeats it."""
        ...

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        """What became of an order that may have been sent. LOST when there is nothing to ask."""
        ...


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that an action would change: their number, and the names that were reported."""

    count: int
    names: tuple[str, ...] = ()


class ProbeFailed(Exception):
    """The target could not be read. `refused` when the control plane says that it would refuse.

    The message is for people and holds no secret; `body` is the answer as received, not redacted.
    """

    def __init__(self, message: str, *, refused: bool = False, body: JsonValue = None) -> None:
        super().__init__(message)
        self.message = message
        self.refused = refused
        self.body = body


class Probe(Protocol):
    """Reads the target of an action. Changes nothing; every call raises ProbeFailed."""

    async def dry_run(self, order: ControlOrder) -> JsonValue:
        """What the order would do, as its own endpoint says with `dry_run` set."""
        ...

    async def count(self, order: ControlOrder) -> Objects:
        """What it would touch, from the count URL."""
        ...

    async def fingerprint(self, order: ControlOrder) -> Mapping[str, str]:
        """The facts that make the target what it is now, from the fingerprint URL."""
        ...


HOLE: Final = "{product}"
_PARAM: Final = re.compile(r"\{params\.([A-Za-z0-9_-]{1,64})\}")


class BadTemplate(ValueError):
    """The template or what would fill it is not usable; the message says why."""


def check_template(template: str, *, params: bool = False) -> None:
    """Raises BadTemplate unless it is http(s) with a fixed host and only known placeholders.

    `{params.NAME}` is allowed with `params`.
    """
    parts = urlsplit(template)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadTemplate("must be an http:// or https:// URL with a host")
    if "{" in parts.netloc or "}" in parts.netloc:
        raise BadTemplate("{product} may not be part of the host")
    if parts.username or parts.password:
        raise BadTemplate("must not contain a user name or password; use `token`")
    if parts.fragment or "#" in template:
        raise BadTemplate("must not contain a fragment (#)")
    rest = template.replace(HOLE, "")
    if params:
        rest = _PARAM.sub("", rest)
    if "{" in rest or "}" in rest:
        known = "{product} and {params.NAME}" if params else "{product}"
        raise BadTemplate(f"only {known} can be filled in")


def fill(template: str, product: str, params: Mapping[str, JsonValue] | None = None) -> str:
    """The URL for one product, percent-encoded so that it stays one path segment or value.

    Raises BadTemplate for a template that does not pass `check_template`, and for a filling that
    is empty, or that would be a relative path step (RFC 3986 section 3.3: `.` and `..`).
    """
    check_template(template, params=params is not None)

    def value(hole: re.Match[str]) -> str:
        return _segment((params or {}).get(hole[1]), f"parameter {hole[1]}")

    filled = _PARAM.sub(value, template) if params is not None else template
    return filled.replace(HOLE, _segment(product, "product")) if HOLE in filled else filled


def _segment(value: JsonValue, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value in ("", ".", ".."):
        raise BadTemplate(f"{value!r} cannot be a {what} here")
    try:
        return quote(str(value), safe="")
    except UnicodeEncodeError as error:
        raise BadTemplate(f"a {what} with half a character cannot be in a URL") from error
