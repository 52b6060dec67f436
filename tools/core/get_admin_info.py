"""core__get_admin_info: what a product says of itself: version, uptime, health, configuration."""

from pydantic import ConfigDict, JsonValue, ValidationError

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.arguments import Product
from tools.core.built_in import bound, read_only
from tools.errors import UpstreamFailed
from tools.products import BY_PRODUCT


class AdminInfoInput(ToolInput):
    product: Product


class AdminInfoOutput(ToolOutput):
    """The envelope's known fields; what a product adds to it is not shown."""

    model_config = ConfigDict(extra="ignore")

    product: str
    version: str | None = None
    uptime_s: float | None = None
    health: str | None = None
    build: dict[str, JsonValue] | None = None
    config_hash: str | None = None
    feature_flags: dict[str, JsonValue] | None = None


class GetAdminInfo:
    contract = read_only(
        "get_admin_info",
        "What a product says of itself: running version, uptime, health, feature flags. Use to"
        " check what really runs, e.g. after a deploy.",
        (AdminInfoInput, AdminInfoOutput),
        "admin",
        BY_PRODUCT,
        "investigate",
        "recommend",
        "platform",
        timeouts=LOOKUP,
    )

    async def execute(
        self, arguments: AdminInfoInput, call: CallContext, caps: Capabilities
    ) -> AdminInfoOutput:
        found = await bound(caps.admin, "admin").info(arguments.product, call)
        try:
            return AdminInfoOutput.model_validate({**found, "product": arguments.product})
        except ValidationError as error:
            raise UpstreamFailed("not the envelope of /admin/info") from error

    def summarise(self, output: AdminInfoOutput, arguments: AdminInfoInput) -> str:
        health = f", {output.health}" if output.health else ""
        return f"{arguments.product} {output.version or 'unknown version'}{health}"
