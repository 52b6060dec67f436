"""How each backend of the model server fails: before an answer, and within one."""

from aiohttp import web

from tests.fakes import aws_frames
from tests.fakes.model_wires import Failure, Json, sse


def failed(wire: str, failure: Failure) -> web.Response:
    headers = dict(failure.headers)
    if wire == "bedrock" and failure.status in _AWS:
        name = _AWS[failure.status]
        headers["x-amzn-errortype"] = f"{name}:http://internal.amazon.com/coral/com.amazon/"
    body = _body(wire, failure) if failure.body is None else failure.body
    return web.json_response(body, status=failure.status, headers=headers)


def _body(wire: str, failure: Failure) -> Json:
    openai = {"error": {"message": failure.message, "type": "scripted", "code": None}}
    name = _ANTHROPIC.get(failure.status, "api_error")
    shapes: dict[str, Json] = {
        "anthropic": {"type": "error", "error": {"type": name, "message": failure.message}},
        "openai": openai,
        "openai-responses": openai,
        "ollama": {"error": failure.message},
        "bedrock": {"message": failure.message},
        "nirmata": {"error": failure.message},
    }
    return shapes[wire]


_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_AWS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}
ERRORS = {
    "anthropic": sse({"type": "error", "error": _OVERLOADED}, named=True),
    "openai": sse({"error": {"message": "Overloaded", "code": 503}}, named=False),
    "openai-responses": sse(
        {"type": "error", "code": "server_error", "message": "Overloaded"}, named=True
    ),
    "ollama": b'{"error":"server busy, please try again"}\n',
    "bedrock": aws_frames.exception("serviceUnavailableException", "Overloaded"),
    "nirmata": b'{"type":"error","error":"the model is overloaded"}\n',
}
