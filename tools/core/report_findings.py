"""core__report_findings: the closing statement of an investigation, so that programs can read it."""

from typing import Annotated, Literal

from pydantic import Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, Effect, ToolContract, ToolInput, ToolOutput
from tools.products import OF_NO_PRODUCT

Verdict = Literal["cause", "symptoms", "healthy", "unknown"]
Words = Annotated[str, Field(max_length=300)]
_MOST = 20


class Suspect(ToolInput):
    """One possible cause. `score` is comparable within one answer only."""

    product: Annotated[str, Field(max_length=128)]
    kind: Annotated[str, Field(max_length=64, description="deploy, cpu, ...")] = ""
    since: Annotated[str, Field(max_length=40, description="RFC 3339")] = ""
    until: Annotated[str, Field(max_length=40, description="RFC 3339, where it is over")] = ""
    score: float = 0.0
    evidence: Annotated[tuple[str, ...], Field(max_length=_MOST, description="E3, ...")] = ()


class FindingsInput(ToolInput):
    verdict: Annotated[
        Verdict,
        Field(
            description="symptoms: wrong, cause not known; healthy: all that exists was looked at"
        ),
    ]
    suspects: Annotated[tuple[Suspect, ...], Field(max_length=_MOST)] = ()
    looked_at: Annotated[tuple[Words, ...], Field(max_length=_MOST)] = ()
    missing: Annotated[tuple[Words, ...], Field(max_length=_MOST, description="and why")] = ()
    also_found: Annotated[tuple[Words, ...], Field(max_length=_MOST)] = ()


class FindingsOutput(ToolOutput):
    """That it was taken; and what the answer had no room for, which people read behind Evidence."""

    verdict: Verdict
    suspects: int
    also_found: list[str] | None = None
    not_looked_at: list[str] | None = None


class ReportFindings:
    """Takes the statement; it changes nothing and nothing is stored but the call itself."""

    contract = ToolContract(
        id="core__report_findings",
        description="State the outcome of an investigation once, before the closing answer.",
        input=FindingsInput,
        output=FindingsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(FindingsOutput.model_fields),
        timeouts=LOOKUP,
        capabilities=frozenset(),
        products=OF_NO_PRODUCT,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: FindingsInput, call: CallContext, caps: Capabilities
    ) -> FindingsOutput:
        """Only says that it was taken. What a model says was missing, it need not read again."""
        del call, caps
        found = list(arguments.also_found)
        return FindingsOutput(
            verdict=arguments.verdict,
            suspects=len(arguments.suspects),
            also_found=found or None,
            not_looked_at=list(arguments.missing) if found else None,
        )

    def summarise(self, output: FindingsOutput, arguments: FindingsInput) -> str:
        del output
        names = ", ".join(
            f"{one.product}{' (over)' if one.until else ''}" for one in arguments.suspects[:3]
        )
        return f"{arguments.verdict}: {names}" if names else arguments.verdict
