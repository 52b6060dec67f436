"""From what a tool returned to the text a model is given: validate, allowlist, clean, redact, cap.

Pure and synchronous; the runner decides where it runs. Nothing unredacted gets past a failure here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from tools.catalog import BoundTool
from tools.contract import ToolContract
from tools.errors import ToolErrorCode
from tools.failure import UNEXPECTED, WITHHELD, CallFailed
from tools.output import NotStrictJson, clean_value, to_json
from tools.redactor import Redactor
from tools.size_cap import capped


@dataclass(frozen=True, slots=True)
class Rendered:
    """What may leave. `cut` says that something is missing, by the tool's word or by the cap."""

    content: str
    cut: bool


def validated(contract: ToolContract, output: object) -> BaseModel:
    """The output, checked against the contract. Raises CallFailed(output_invalid)."""
    try:
        return contract.output.model_validate(output)
    except ValidationError as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error


def dumped(model: BaseModel) -> dict[str, JsonValue]:
    """Plain values; fields that are None are left out. Raises CallFailed(output_invalid)."""
    try:
        value: dict[str, JsonValue] = model.model_dump(mode="json", exclude_none=True)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error
    return value


def rendered(
    entry: BoundTool, value: dict[str, JsonValue], redactor: Redactor, max_bytes: int
) -> Rendered:
    """Raises CallFailed: output_invalid, or redaction_failed with nothing of the result."""
    opaque: dict[str, JsonValue] = {}
    try:
        clean = clean_value(entry.allowlist.apply(value))
        assert isinstance(clean, dict)  # noqa: S101 - the copy of a dict is a dict
        for name in entry.contract.opaque & clean.keys():
            opaque[name] = clean.pop(name)
        redacted = redacted_value(clean, redactor)
        whole, cut = capped({**redacted, **opaque}, max_bytes)
        content = to_json(whole)
    except NotStrictJson as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error
    return Rendered(content, cut or whole.get("truncated") is True)


def redacted_value(value: dict[str, JsonValue], redactor: Redactor) -> dict[str, JsonValue]:
    """The value with secrets masked. Raises CallFailed(redaction_failed), NotStrictJson."""
    to_json(value)  # what is not strict JSON says so before anything of it is touched
    try:
        masked = redactor.redact_value(value)
    except Exception:  # noqa: BLE001 - redaction fails closed, whatever broke
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD) from None
    if not isinstance(masked, dict):
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD)
    return masked


def redacted_text(text: str, redactor: Redactor) -> str:
    """Raises CallFailed(redaction_failed), without the text anywhere in it."""
    redact: Callable[[str], str] = redactor.redact
    try:
        return redact(text)
    except Exception:  # noqa: BLE001 - redaction fails closed, whatever broke
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD) from None
