"""core__get_current_time: the clock."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.built_in import read_only
from tools.products import OF_NO_PRODUCT
from tools.timerange import instant_text


class CurrentTimeInput(ToolInput):
    pass


class CurrentTimeOutput(ToolOutput):
    now: str
    timezone: str = "UTC"


class GetCurrentTime:
    contract = read_only(
        "get_current_time",
        "The time now, in UTC. Relative time ranges need no call of this.",
        (CurrentTimeInput, CurrentTimeOutput),
        "clock",
        OF_NO_PRODUCT,
        "investigate",
        "recommend",
        "platform",
        timeouts=LOOKUP,
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
