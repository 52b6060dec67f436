"""core__search_patterns: what the team wrote down: patterns, conventions, runbooks."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.output import clean_text
from tools.products import OF_NO_PRODUCT

MAX_TEXT_CHARS = 2000


class PatternsInput(ToolInput):
    intent: Annotated[
        str, Field(min_length=1, max_length=500, description="Words: symptom, system or intent")
    ]
    limit: Annotated[int, Field(ge=1, le=10)] = 5


class PatternEntry(ToolOutput):
    title: str
    file: str
    section: str | None = None
    text: str


class PatternsOutput(ToolOutput):
    """The best first."""

    patterns: list[PatternEntry]


class SearchPatterns:
    contract = read_only(
        "search_patterns",
        "The team's written patterns and runbooks. Use for how this team runs, fixes or builds"
        " something.",
        (PatternsInput, PatternsOutput),
        "patterns",
        OF_NO_PRODUCT,
        "investigate",
        "recommend",
        "platform",
        timeouts=LOOKUP,
    )

    async def execute(
        self, arguments: PatternsInput, call: CallContext, caps: Capabilities
    ) -> PatternsOutput:
        del call
        found = await bound(caps.patterns, "patterns").search(arguments.intent, arguments.limit)
        return PatternsOutput(
            patterns=[
                entry_of(PatternEntry, one, text=clean_text(one.text)[:MAX_TEXT_CHARS])
                for one in found
            ]
        )

    def summarise(self, output: PatternsOutput, arguments: PatternsInput) -> str:
        return f'{counted(len(output.patterns), "page")} on "{clean_text(arguments.intent)[:60]}"'
