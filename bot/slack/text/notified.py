"""What a notification says of an answer: its first sentence, in plain words; then the rest.

Slack shows notifications, and reads out to people who do not see, what stands in a message's `text`:
so the first sentence is a line of its own there, and all the others follow it
(https://docs.slack.dev/reference/methods/chat.postMessage#accessibility). A message that Slack itself lets
grow has no such text: it is notified of when it begins, and neither call takes one.
"""

import re
from typing import Final

_MOST: Final = 300  # characters of a first sentence; beyond it, the line
_ENDS: Final = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bca)(?<!\bapprox)[.!?](?:\*\*)?(?:\s?\[E\d[E\d, ]*\])*(?=\s|$)"
)
_HEADING: Final = re.compile(r"^(?:#{1,6}|[-*+]|\d{1,2}[.)]|>)\s+")
# Nothing is joined that stood apart: two halves of a name would make a link.
_CITED: Final = re.compile(r"\s\[E\d{1,4}(?:, ?E\d{1,4})*\](?=$|\s|[.,;:!?)](?:\s|$))")
_NO_PROSE: Final = ("```", "~~~", "|")


def notified(body: str) -> str:
    """The same text with its first sentence plain and on a line of its own. `body` is safe."""
    text = body.lstrip()
    if text.startswith(_NO_PROSE):
        return body
    line, _, below = text.partition("\n")
    found = _ENDS.search(line, 0, _MOST)
    if found is None and not below:
        return body  # it may be half a sentence yet
    first, rest = (line[: found.end()], line[found.end() :]) if found else (line, "")
    plain = _HEADING.sub("", first).strip()
    if plain.count("**") % 2 == 0:
        plain = plain.replace("**", "")
    elif plain.startswith("**"):
        plain, rest = plain[2:], f"**{rest.lstrip()}"
    plain = _CITED.sub("", plain)
    return "\n".join(each for each in (plain, rest.strip(), below) if each) or body
