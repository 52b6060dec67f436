"""core__get_current_time: the clock."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, Effect, ToolContract, ToolInput, ToolOutput
from tools.products import OF_NO_PRODUCT
from tools.timerange import instant_text


class CurrentTimeInput(ToolInput):
    pass


class CurrentTimeOutput(ToolOutput):
    now: str
    timezone: str = "UTC"


class GetCurrentTime:
    contract = ToolContract(
        id="core__get_current_time",
        description="The time now, in UTC. Relative time ranges need no call of this.",
        input=CurrentTimeInput,
        output=CurrentTimeOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(CurrentTimeOutput.model_fields),
        timeouts=LOOKUP,
        capabilities=frozenset({"clock"}),
        products=OF_NO_PRODUCT,
        toolsets=("investigate", "recommend", "platform"),
        live=True,
    )

    async def execute(
        self, arguments: CurrentTimeInput, call: CallContext, caps: Capabilities
    ) -> CurrentTimeOutput:
        del arguments, call
        return CurrentTimeOutput(now=instant_text(caps.clock.now()))

    def summarise(self, output: CurrentTimeOutput, arguments: CurrentTimeInput) -> str:
        del arguments
        return output.now
