"""What a call must pass before its tool runs: catalog, policy, limits, authorisation, connections,
input, products, capabilities. Each check either narrows the call or ends it with a CallFailed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import orjson
from pydantic import BaseModel, ValidationError

from tools.call_limits import CallLimits
from tools.capabilities import CallContext, Capabilities
from tools.catalog import BoundTool, ToolCatalog, missing_capabilities
from tools.contract import ToolContract
from tools.encoded_json import decoded
from tools.errors import ToolErrorCode
from tools.failure import CallFailed
from tools.output import NotStrictJson, clean_value
from tools.policy import ToolPolicy
from tools.products import refusal
from tools.schema import input_schema, problems_in_words

# None admits; otherwise why not, in words that may be shown.
Authoriser = Callable[[ToolContract, CallContext], Awaitable[str | None]]

MAX_ARGUMENT_CHARS = 64 * 1024
AUTHORISE_TIMEOUT_S = 5.0
# One text for a tool that does not exist and one that is not allowed: the difference is not theirs.
NO_SUCH_TOOL = "no such tool here; use only the tools listed in this request"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run. `context` carries only the connections it may use."""

    entry: BoundTool
    arguments: BaseModel
    context: CallContext
    limits: CallLimits


@dataclass(frozen=True, slots=True)
class Admission:
    catalog: ToolCatalog
    policy: ToolPolicy
    capabilities: Capabilities
    authorise: Authoriser | None = None

    async def admit(self, name: str, arguments: str, context: CallContext) -> Admitted:
        """Raises CallFailed with the code of the first check that fails."""
        entry = self.catalog.get(name)
        if entry is None or not self.policy.allows(entry.contract, context):
            raise CallFailed(ToolErrorCode.POLICY_DENIED, NO_SUCH_TOOL)
        limits = self.policy.limits_of(context)
        too_much = limits.refusal(context.spent)
        if too_much is not None:
            raise CallFailed(ToolErrorCode.POLICY_DENIED, too_much)
        await self._check_authority(entry.contract, context)
        context = self._narrowed(entry.contract, context)
        model = parsed_arguments(entry.contract, arguments)
        outside = refusal(entry.contract.products, model, context)
        if outside is not None:
            raise CallFailed(ToolErrorCode.POLICY_DENIED, outside)
        missing = missing_capabilities(entry.contract, self.capabilities)
        if missing:
            raise CallFailed(ToolErrorCode.UNAVAILABLE, f"not configured: {', '.join(missing)}")
        return Admitted(entry, model, context, limits)

    async def _check_authority(self, contract: ToolContract, context: CallContext) -> None:
        """A call without a user is refused; a failed look-up denies."""
        if not context.actor:
            raise CallFailed(ToolErrorCode.AUTHZ_DENIED, "there is no asker")
        if self.authorise is None:
            return
        try:
            async with asyncio.timeout(AUTHORISE_TIMEOUT_S):
                refusal = await self.authorise(contract, context)
        except Exception as error:
            message = "permission could not be checked; try again"
            raise CallFailed(ToolErrorCode.AUTHZ_DENIED, message) from error
        if refusal is not None:
            raise CallFailed(ToolErrorCode.AUTHZ_DENIED, refusal)

    def _narrowed(self, contract: ToolContract, context: CallContext) -> CallContext:
        effective = self.policy.connections(context.connection_ids)
        if contract.requires_connection and not effective:
            raise CallFailed(ToolErrorCode.POLICY_DENIED, "no connection is granted for this tool")
        if effective == context.connection_ids:
            return context
        return replace(context, connection_ids=effective)


def parsed_arguments(contract: ToolContract, arguments: str) -> BaseModel:
    """The validated input model. Raises CallFailed, never repeating the input.

    An empty text is an empty object: some providers write nothing for a call without arguments.
    JSON text is decoded if it is the arguments, or an object or a list in them.
    """
    if len(arguments) > MAX_ARGUMENT_CHARS:
        raise CallFailed(ToolErrorCode.VALIDATION, "arguments: too long")
    try:
        sent = clean_value(orjson.loads(arguments)) if arguments.strip() else {}
        sent = decoded(sent, {"type": "object"})
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise CallFailed(
            ToolErrorCode.INVALID_JSON, f"the arguments are not valid JSON ({where})"
        ) from None
    except NotStrictJson as error:
        raise CallFailed(ToolErrorCode.VALIDATION, f"arguments: {error}") from None
    if not isinstance(sent, dict):
        raise CallFailed(ToolErrorCode.VALIDATION, "arguments: must be a JSON object")
    try:
        return contract.input.model_validate(sent)
    except ValidationError as error:
        again = decoded(sent, input_schema(contract.input))
        if again != sent:
            with suppress(ValidationError):
                return contract.input.model_validate(again)
        words = problems_in_words(error, contract.input.model_fields)
        raise CallFailed(ToolErrorCode.VALIDATION, words) from None
