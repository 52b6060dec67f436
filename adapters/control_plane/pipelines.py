"""Confirmed actions as runs of GitHub Actions or GitLab CI.

Neither service takes an idempotency key: the run carries the proposal's id in its name, and is
looked for by it. A workflow needs `run-name: ${{ inputs.kortex_proposal }}` and the input
`kortex_proposal`; a GitLab pipeline `workflow: name: $KORTEX_PROPOSAL`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import httpx
import orjson
from pydantic import JsonValue

from adapters.control_plane.exchange import exchange, never_connected, unformed, url_of, value_of
from adapters.control_plane.port import AnswerKind, BadTemplate, ControlAnswer, ControlOrder, fill
from adapters.errors import AdapterError

# docs.github.com/rest/actions/workflow-runs: `status`, then `conclusion` of a completed run.
# docs.gitlab.com/api/pipelines: `status`.
_SUCCEEDED: Final = frozenset({"success", "neutral"})
_FAILED: Final = frozenset(
    {
        "failure",
        "failed",
        "cancelled",
        "canceled",
        "skipped",
        "timed_out",
        "startup_failure",
        "stale",
    }
)
_RUNS_PER_PAGE: Final = 50

Credentials = Callable[[str], str]


class Service(Protocol):
    name: str

    def headers(self, token: str) -> Mapping[str, str]: ...

    def start(self, order: ControlOrder) -> tuple[str, JsonValue]:
        """The path to POST to, below the endpoint's URL, and the body."""
        ...

    def search(self, key: str) -> tuple[str, Mapping[str, str]]:
        """The path and query that list the runs among which the order's may be."""
        ...

    def run_of(self, answer: JsonValue, key: str) -> Mapping[str, JsonValue] | None:
        """The order's run among those listed."""
        ...


class Pipelines:
    """Implements `ControlPlane` over one service. The caller owns the client."""

    def __init__(
        self, service: Service, client: httpx.AsyncClient, credentials: Credentials
    ) -> None:
        self._service = service
        self._client = client
        self._credentials = credentials

    async def send(self, order: ControlOrder) -> ControlAnswer:
        """Start the run once: RUNNING when the service took it."""
        path, body = self._service.start(order)
        try:
            request = self._request(order, "POST", path, content=orjson.dumps(body))
        except (BadTemplate, KeyError) as error:
            return ControlAnswer(AnswerKind.NOT_SENT, unformed(error))
        try:
            status, said = await exchange(self._client, request, order.endpoint.timeout_s)
        except AdapterError as error:
            kind = AnswerKind.NOT_SENT if never_connected(error) else AnswerKind.LOST
            return ControlAnswer(kind, error.message, error.status)
        return self._started(status, value_of(said))

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        """Look for the run by its name. LOST while none has it."""
        path, query = self._service.search(order.idempotency_key)
        try:
            request = self._request(order, "GET", path, query=query)
            status, said = await exchange(self._client, request, order.endpoint.timeout_s)
        except (BadTemplate, KeyError) as error:
            return ControlAnswer(AnswerKind.LOST, unformed(error))
        except AdapterError as error:
            return ControlAnswer(AnswerKind.LOST, error.message, error.status)
        if not 200 <= status < 300:
            return ControlAnswer(
                AnswerKind.LOST, f"{self._service.name} answered {status}", status, value_of(said)
            )
        run = self._service.run_of(value_of(said), order.idempotency_key)
        if run is None:
            return ControlAnswer(
                AnswerKind.LOST, f"{self._service.name} lists no run of that name", status
            )
        return _run_answer(self._service.name, run)

    def _started(self, status: int, said: JsonValue) -> ControlAnswer:
        name = self._service.name
        if 200 <= status < 300:
            run = _told(said) if isinstance(said, dict) else None
            return ControlAnswer(AnswerKind.RUNNING, f"{name} took it", status, run)
        if 400 <= status < 500:
            return ControlAnswer(
                AnswerKind.FAILED, f"{name} refused it with {status}", status, said
            )
        return ControlAnswer(AnswerKind.LOST, f"{name} answered {status}", status, said)

    def _request(
        self,
        order: ControlOrder,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        query: Mapping[str, str] | None = None,
    ) -> httpx.Request:
        endpoint = order.endpoint
        url = url_of(fill(endpoint.url, order.product).rstrip("/") + path, query)
        token = self._credentials(endpoint.credential_id) if endpoint.credential_id else ""
        return self._client.build_request(
            method,
            url,
            headers={**self._service.headers(token), "Content-Type": "application/json"},
            content=content,
            timeout=endpoint.timeout_s,
        )


class GitHub:
    """`POST …/actions/workflows/{workflow}/dispatches`, then its runs."""

    name = "GitHub"

    def headers(self, token: str) -> Mapping[str, str]:
        """The version of the API that these bodies follow."""
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        return {**headers, "Authorization": f"Bearer {token}"} if token else headers

    def start(self, order: ControlOrder) -> tuple[str, JsonValue]:
        """Inputs are text; ours come last, so that no parameter can take their place."""
        inputs: dict[str, JsonValue] = {name: _text(v) for name, v in order.params.items()}
        inputs |= {"product": order.product, "kortex_proposal": order.idempotency_key}
        return "/dispatches", {"ref": order.endpoint.ref, "inputs": inputs}

    def search(self, key: str) -> tuple[str, Mapping[str, str]]:  # noqa: ARG002 - the port's
        return "/runs", {"event": "workflow_dispatch", "per_page": str(_RUNS_PER_PAGE)}

    def run_of(self, answer: JsonValue, key: str) -> Mapping[str, JsonValue] | None:
        """By its title, which `run-name` sets."""
        listed = answer.get("workflow_runs") if isinstance(answer, dict) else None
        return _named(listed, ("display_title", "name"), key)


class GitLab:
    """`POST /projects/{id}/pipeline`, then the pipelines of its name."""

    name = "GitLab"

    def headers(self, token: str) -> Mapping[str, str]:
        """A personal, project or group access token."""
        return {"PRIVATE-TOKEN": token} if token else {}

    def start(self, order: ControlOrder) -> tuple[str, JsonValue]:
        """Parameters become variables of their own prefix: none can be PATH."""
        values = {
            "KORTEX_PROPOSAL": order.idempotency_key,
            "KORTEX_ACTION": order.action,
            "KORTEX_PRODUCT": order.product,
            **{f"KORTEX_PARAM_{_variable(k)}": _text(v) for k, v in order.params.items()},
        }
        variables: list[JsonValue] = [{"key": k, "value": v} for k, v in values.items()]
        return "/pipeline", {"ref": order.endpoint.ref, "variables": variables}

    def search(self, key: str) -> tuple[str, Mapping[str, str]]:
        """GitLab finds a pipeline by its name."""
        return "/pipelines", {"name": key}

    def run_of(self, answer: JsonValue, key: str) -> Mapping[str, JsonValue] | None:
        return _named(answer, ("name",), key)


def _named(listed: JsonValue, fields: Sequence[str], key: str) -> Mapping[str, JsonValue] | None:
    """The newest run with the key in its name as a word of its own."""
    for run in listed if isinstance(listed, list) else ():
        if isinstance(run, dict) and any(key in str(run.get(f, "")).split() for f in fields):
            return run
    return None


def _run_answer(service: str, run: Mapping[str, JsonValue]) -> ControlAnswer:
    word = str(run.get("conclusion") or run.get("status") or "unknown")
    kind = AnswerKind.RUNNING
    if word in _SUCCEEDED:
        kind = AnswerKind.SUCCEEDED
    elif word in _FAILED:
        kind = AnswerKind.FAILED
    return ControlAnswer(kind, f"{service} says {word}", 200, _told(run))


def _told(run: Mapping[str, JsonValue]) -> JsonValue:
    url = run.get("html_url") or run.get("web_url")
    kept = {"run": run.get("id"), "status": run.get("conclusion") or run.get("status"), "url": url}
    return {key: value for key, value in kept.items() if value is not None}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _variable(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in name).upper()
