"""Does the answer stand on its evidence? Citations that do not exist and figures nobody returned.

Pure text work: it flags, it never rewrites. A flagged answer is still shown, with the doubt beside it.
"""

import re
from collections.abc import Sequence

from bot.domain.citations import CITATION, cited
from bot.domain.events import Evidence

# Figures worth checking: decimals, and integers that carry a unit. Bare small integers ("three
# replicas", list numbers) are prose.
_FIGURE = re.compile(
    r"(?<![\w.:/-])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+)\s?"
    r"(%|ms|µs|us|s|sec|seconds|m|min|minutes|h|hours|x|×|σ|sigma|rps|req/s|KiB|MiB|GiB|KB|MB|GB)?"
    r"(?![\w:/-]|\.\d)"
)
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_RELATIVE_TOLERANCE = 0.051  # rounding to two significant digits moves a figure by at most 5 %
_MAX_DOUBTS = 6
_SCALES = (1.0, 100.0, 0.01, 1000.0, 0.001, 60.0, 1 / 60, 3600.0, 1 / 3600)
_FREE_TEXT_LIMIT = 2_000_000  # characters of evidence searched; results are capped far below


def doubts(answer: str, evidence: Sequence[Evidence], question: str) -> tuple[str, ...]:
    """What a reader should not take for established, in words; empty when all of it stands."""
    found = _unknown_citations(answer, evidence)
    figures = _ungrounded_figures(answer, evidence, question)
    if figures:
        found.append(f"not found in any tool result: {', '.join(figures[:_MAX_DOUBTS])}")
    if answer.strip() and evidence and not cited(answer):
        found.append("the answer cites none of its evidence")
    return tuple(found)


def _unknown_citations(answer: str, evidence: Sequence[Evidence]) -> list[str]:
    known = {e.number for e in evidence}
    unknown = sorted(set(cited(answer)) - known)
    return [f"cites E{n}, which does not exist" for n in unknown[:_MAX_DOUBTS]]


def _ungrounded_figures(answer: str, evidence: Sequence[Evidence], question: str) -> list[str]:
    prose = CITATION.sub(" ", _CODE.sub(" ", answer))
    known = _numbers(" ".join([e.content for e in evidence])[:_FREE_TEXT_LIMIT])
    known |= _numbers(question) | _numbers(" ".join(e.summary for e in evidence))
    missing: list[str] = []
    for match in _FIGURE.finditer(prose):
        text, unit = match[1], match[2]
        if unit is None and "." not in text and "," not in text:
            continue
        if not _supported(float(text.replace(",", "")), known) and match[0].strip() not in missing:
            missing.append(match[0].strip())
    return missing


def _numbers(text: str) -> set[float]:
    return {abs(float(n.replace(",", ""))) for n in _NUMBER.findall(text) if len(n) < 40}


def _supported(figure: float, known: set[float]) -> bool:
    """Equal to a returned number up to rounding, in its own unit or a common other one."""
    return any(
        abs(figure - number * scale) <= max(_RELATIVE_TOLERANCE * abs(figure), 1e-9)
        for scale in _SCALES
        for number in known
    )
