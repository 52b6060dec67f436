"""core__kubectl_logs: the newest lines of a container, also of the one that crashed."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import (
    CallContext,
    Capabilities,
)
from tools.cluster_objects import PodLogQuery
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import StepText, step_seconds
from tools.core.bound import bound
from tools.core.cluster_arguments import Namespace, ObjectName
from tools.output import clean_text
from tools.products import CANNOT_BE_TOLD

MAX_LINES = 100
MAX_LINE_CHARS = 1000
BUDGET_CHARS = 48 * 1024


class PodLogsInput(ToolInput):
    pod: ObjectName
    namespace: Namespace = ""
    container: Annotated[ObjectName, Field(description="Needed when there are several")] = ""
    previous: Annotated[
        bool, Field(description="Of the run before the last restart: it holds the crash")
    ] = False
    since: Annotated[StepText | None, Field(description="Only the last e.g. '30m'")] = None
    tail: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES


class PodLogsOutput(ToolOutput):
    lines: list[str]
    truncated: bool


class KubectlLogs:
    contract = ToolContract(
        id="core__kubectl_logs",
        description=(
            "Newest log lines of one container. Use previous=true for a pod that restarted; not"
            " for whole products or long ranges."
        ),
        input=PodLogsInput,
        output=PodLogsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(PodLogsOutput.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"kubernetes"}),
        products=CANNOT_BE_TOLD,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: PodLogsInput, call: CallContext, caps: Capabilities
    ) -> PodLogsOutput:
        del call
        since_s = step_seconds(arguments.since)
        found = await bound(caps.kubernetes, "kubernetes").logs(
            PodLogQuery(
                namespace=arguments.namespace,
                pod=arguments.pod,
                container=arguments.container,
                previous=arguments.previous,
                tail=arguments.tail,
                since_s=None if since_s is None else round(since_s),
            )
        )
        lines = _fitting([clean_text(line)[:MAX_LINE_CHARS] for line in found[-arguments.tail :]])
        return PodLogsOutput(lines=lines, truncated=len(found) >= arguments.tail)

    def summarise(self, output: PodLogsOutput, arguments: PodLogsInput) -> str:
        number = len(output.lines)
        before = ", before its restart" if arguments.previous else ""
        return f"{number or 'no'} line{'' if number == 1 else 's'} of {arguments.pod}{before}"


def _fitting(lines: list[str]) -> list[str]:
    """The newest lines that fit the result: the cap would keep the oldest."""
    used = 0
    for number, line in enumerate(reversed(lines)):
        used += len(line)
        if used > BUDGET_CHARS:
            return lines[len(lines) - number :]
    return lines
