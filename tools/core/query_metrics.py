"""core__query_metrics: a PromQL query, over a range or at an instant, in the format of get_metrics."""

from typing import Annotated

from pydantic import AfterValidator, Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import QUERY, Effect, ToolContract, ToolInput
from tools.core.arguments import StepText, TimeRangeText, step_seconds
from tools.core.bound import bound
from tools.core.metric_view import REDACTION, MetricsOutput, told, view
from tools.products import CANNOT_BE_TOLD
from tools.timerange import parse_time_range

MAX_CHARS = 4000


def _query(text: str) -> str:
    if not text.strip() or not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise ValueError("a query is printable text, not empty")
    return text.strip()


class QueryInput(ToolInput):
    query: Annotated[
        str,
        AfterValidator(_query),
        Field(max_length=MAX_CHARS, description="PromQL, e.g. 'sum by (pod) (rate(x_total[5m]))'"),
    ]
    time_range: TimeRangeText
    step: Annotated[StepText | None, Field(description="Resolution, e.g. '1m', '5m'")] = None
    instant: Annotated[bool, Field(description="Only the value at the range's end")] = False


class QueryMetrics:
    contract = ToolContract(
        id="core__query_metrics",
        description=(
            "Runs PromQL over a time range. Use where one metric is not enough: sums over labels,"
            " ratios, topk. Use only names that were found before."
        ),
        input=QueryInput,
        output=MetricsOutput,
        effect=Effect.READ_ONLY,
        redaction=REDACTION,
        timeouts=QUERY,
        capabilities=frozenset({"metrics"}),
        products=CANNOT_BE_TOLD,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: QueryInput, call: CallContext, caps: Capabilities
    ) -> MetricsOutput:
        when = parse_time_range(arguments.time_range, call.now)
        result = await bound(caps.metrics, "metrics").promql(
            arguments.query,
            when.interval,
            step_seconds(arguments.step),
            instant=arguments.instant,
        )
        return view(result, when.text, [when.assumed] if when.assumed else [])

    def summarise(self, output: MetricsOutput, arguments: QueryInput) -> str:
        return told(" ".join(arguments.query.split())[:40], output, arguments.time_range)
