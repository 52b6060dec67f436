"""Every name in a trace: OpenTelemetry's conventions for generative AI, and ours.

The `gen_ai.*` names are in development (semantic conventions 1.41,
https://opentelemetry.io/docs/specs/semconv/gen-ai/); only this file changes with them.
"""

from collections.abc import Mapping
from typing import Final

SCOPE: Final = "kortex"

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"

OPERATION: Final = "gen_ai.operation.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ERROR: Final = "error.type"

# Ours: what the conventions have no word for.
ACCEPT: Final = "kortex.accept"
STEP: Final = "kortex.step."
TURN: Final = "kortex.turn.id"
END: Final = "kortex.turn.end"
ROUNDS: Final = "kortex.turn.rounds"
COST: Final = "kortex.cost.usd_micros"
TRUNCATED: Final = "kortex.tool.truncated"
CACHED: Final = "kortex.tool.cached"
RESUMED: Final = "kortex.turn.resumed"

SERVICE: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
SERVICE_INSTANCE: Final = "service.instance.id"

# The conventions' names of providers; any other keeps its own name.
PROVIDERS: Final[Mapping[str, str]] = {"bedrock": "aws.bedrock"}

# Of our metrics, those for which the conventions have a name, with the unit they ask for.
METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "kortex_model_seconds": ("gen_ai.client.operation.duration", "s"),
    "kortex_model_tokens": ("gen_ai.client.token.usage", "{token}"),
}
# Their labels, each with what its values are called; the operation is added.
METRIC_LABELS: Final[Mapping[str, str]] = {"provider": PROVIDER, "kind": "gen_ai.token.type"}
