"""core__propose_action: ask people to confirm an action. It stores a proposal and does nothing else."""

from typing import Annotated, Final

from pydantic import Field, JsonValue

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, PROPOSE_TOOL_ID, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import Product
from tools.core.built_in import bound
from tools.operation import ProposalDraft
from tools.products import BY_PRODUCT
from tools.timerange import instant_text

NOT_RAISED: Final = (
    "It cannot be confirmed here, so no card was posted and nothing is stored. Say what you "
    "would propose, and that people get a card if they ask in a channel."
)


class ProposeInput(ToolInput):
    action: Annotated[
        str, Field(min_length=1, max_length=64, description="Declared name, e.g. 'rollback-deploy'")
    ]
    product: Product
    params: Annotated[
        dict[str, JsonValue], Field(description="The action's parameters", default_factory=dict)
    ]
    rationale: Annotated[
        str, Field(min_length=1, max_length=2000, description="Why, with the evidence")
    ]
    blast_radius: Annotated[
        str,
        Field(max_length=200, description="Scope, e.g. 'one host', 'one service', 'whole cluster'"),
    ] = ""
    reversible: bool | None = None


class ProposeOutput(ToolOutput):
    """The receipt. Nothing has been executed. Without an id no proposal was raised, and `note` says why."""

    proposal_id: str | None = None
    posted_to_chat: bool
    awaits_confirmation: bool
    expires_at: str | None = None
    awaits: list[str]
    note: str | None = None


class ProposeAction:
    contract = ToolContract(
        id=PROPOSE_TOOL_ID,
        description=(
            "Propose a remediation for people to confirm with a button. Never acts by itself."
            " Use once the evidence points to one action; say in the answer that it awaits"
            " confirmation."
        ),
        input=ProposeInput,
        output=ProposeOutput,
        effect=Effect.STATE_CHANGE,
        redaction=frozenset(
            {"proposal_id", "posted_to_chat", "awaits_confirmation", "expires_at", "awaits", "note"}
        ),
        timeouts=LOOKUP,
        capabilities=frozenset({"proposals"}),
        products=BY_PRODUCT,
        toolsets=("investigate", "recommend", "platform"),
        opaque=frozenset({"proposal_id"}),
    )

    async def execute(
        self, arguments: ProposeInput, call: CallContext, caps: Capabilities
    ) -> ProposeOutput:
        draft = ProposalDraft(**dict(arguments))
        receipt = await bound(caps.proposals, "proposals").propose(draft, call)
        if not receipt.stored:
            return ProposeOutput(
                posted_to_chat=False,
                awaits_confirmation=False,
                awaits=list(receipt.awaits),
                note=NOT_RAISED,
            )
        return ProposeOutput(
            proposal_id=receipt.proposal_id,
            posted_to_chat=receipt.posted,
            awaits_confirmation=True,
            expires_at=instant_text(receipt.expires_at),
            awaits=list(receipt.awaits),
        )

    def summarise(self, output: ProposeOutput, arguments: ProposeInput) -> str:
        """`rollback-deploy checkout, awaits responder`; "would await" where none was raised."""
        awaited = ", ".join(output.awaits) or "confirmation"
        waits = "awaits" if output.awaits_confirmation else "would await"
        return f"{arguments.action} {arguments.product}, {waits} {awaited}"
