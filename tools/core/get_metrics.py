"""core__get_metrics: series of a metric with their statistics, thinned to what can be read."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities, MetricQuery
from tools.contract import QUERY, Effect, ToolContract, ToolInput
from tools.core.arguments import Labels, MetricName, Product, StepText, TimeRangeText, step_seconds
from tools.core.bound import bound
from tools.core.metric_view import REDACTION, MetricsOutput, told, view
from tools.products import BY_PRODUCT
from tools.timerange import parse_time_range


class MetricsInput(ToolInput):
    product: Product
    metric_name: MetricName
    time_range: TimeRangeText
    labels: Annotated[Labels, Field(description="Label filters", default_factory=dict)]
    step: Annotated[StepText | None, Field(description="Resolution, e.g. '1m', '5m'")] = None


class GetMetrics:
    contract = ToolContract(
        id="core__get_metrics",
        description=(
            "Series of a metric of a product over a time range, with min/max/mean/percentiles."
            " Use to see a value's course; it does not"
            " say whether that is unusual."
        ),
        input=MetricsInput,
        output=MetricsOutput,
        effect=Effect.READ_ONLY,
        redaction=REDACTION,
        timeouts=QUERY,
        capabilities=frozenset({"metrics"}),
        products=BY_PRODUCT,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: MetricsInput, call: CallContext, caps: Capabilities
    ) -> MetricsOutput:
        when = parse_time_range(arguments.time_range, call.now)
        query = MetricQuery(
            product=arguments.product,
            metric=arguments.metric_name,
            interval=when.interval,
            labels=arguments.labels,
            step_s=step_seconds(arguments.step),
        )
        result = await bound(caps.metrics, "metrics").query_range(query)
        return view(result, when.text, [when.assumed] if when.assumed else [])

    def summarise(self, output: MetricsOutput, arguments: MetricsInput) -> str:
        return told(arguments.metric_name, output, arguments.time_range)
