"""What people state in a conversation: facts of theirs, with who said it and what it rules out.

A statement asks nothing: no question mark, and it does not begin as a question or an order does.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.llm.messages import Message, Role

_LONGEST: Final = 600
_FEWEST_WORDS: Final = 3
# How a question or an order begins; any other sentence in a thread is a statement.
_ASKS: Final = re.compile(
    r"\W*(?:(?:please|can|could|would|will|should|do|does|did|is|are|was|were|has|have|had|why|(?:what|which|how|who|when|where)(?:['’]?s)?|whom|"
    r"any|anything|show|check|look|find|investigate|compare|list|get|tell|give|see|search|try|run|query|fetch|verify|confirm|"
    r"(?:the )?(?:logs?|lines?|events?|deploys?|traces?|metrics?|graph|p\d\d) (?:of|from|in|for|between|since|after|before|at|around|near|with)|dig|go|start|continue|again|retry|and|but|so|then|now|also|propose|roll|restart|scale|status|ok[, ]|hey[, ]|kortex)\b|$)",
    re.IGNORECASE,
)
# A question that is passed on: "support asks if carts are fine".
_ASKED_ON: Final = re.compile(
    r"\b(?:asks?|asking|asked|wants? to know|wonders?|wondering)\b", re.IGNORECASE
)
# What a program wrote: a log line, a stack trace, an alert.
_PASTED: Final = re.compile(
    r"[\W_]{0,40}(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^?]{0,500}\b(?:error|warn|fatal|panic|info|exception)"
    r"|(?-i:ERROR|WARN(?:ING)?|FATAL|PANIC|CRITICAL|INFO)\b.*[:=/]|traceback \(|[\w.]+(?:exception|error): "
    r"|(?:connection|dial|read|write|context|upstream|failed to|unable to|could not|error|oomkilled)\b[^?\n]{0,200}: \w"
    r"|[^?]{0,500}\blevel=\w|\{\s*\"\w+\"\s*:)|.*\n\s+at [\w.$]+\(",
    re.IGNORECASE,
)
_ALERT: Final = re.compile(
    r"\W*(?:firing|resolved|alert(?:name)?|triggered|critical)\b\s*(?:[\]:]|alert\b)",
    re.IGNORECASE,
)
_THING: Final = r"(?:the |our |my |a |an |that )?([a-z0-9][\w./-]{1,60})"
_IT_IS_NOT: Final = re.compile(
    r"\b(?:(?:it|this|that|cause|problem|issue)(?: is|['’]s| was)?(?: not|n['’]t)|(?:is|was)n['’]t|not|ruled? out|exclude) "
    rf"(?:caused by |because of |due to |coming from |from |in |with )?{_THING}",
    re.IGNORECASE,
)
_IS_NOT_IT: Final = re.compile(
    rf"\b{_THING}(?: is| was| are|['’]s)(?: (?:fine|ok|okay|healthy|innocent|unrelated|ruled out)\b|"
    r"(?: not|n['’]t) (?:it|to blame|(?:the )?(?:cause|problem|issue|culprit))\b)",
    re.IGNORECASE,
)
_SAID_BY: Final = re.compile(r"^- Said by ([^\n.]{1,80})\.$", re.MULTILINE)
_KINDS: Final = {
    name: names
    for names in (
        frozenset({"database", "databases", "db", "postgres", "postgresql", "mysql", "mariadb", "mongo", "mongodb", "sql"}),
        frozenset({"deploy", "deployment", "release", "rollout", "rollback"}),
        frozenset({"cache", "redis", "memcached"}),
        frozenset({"queue", "broker", "kafka", "rabbitmq"}),
    )
    for name in names
}  # fmt: skip
_CLOCK: Final = re.compile(r"(?<![\d:.])(?:[01]?\d|2[0-3]):[0-5]\d(?!\d)")
_DID: Final = re.compile(
    r"\b(?:we|i|they|someone|somebody|ops|the team|it was|that was)\b(?:['’](?:ve|re|m))?(?: (?:just|already|have|had|are|am|only))* "
    r"(?:failed|fail|rolled|restarted|rebooted|deployed|released|shipped|scaled|switched|moved|changed|upgraded|updated|"
    r"disabled|enabled|reverted|blocked|drained|stopped|started|turned|increased|reduced|raised|lowered|merged|migrated|"
    r"patched|flushed|cleared|killed|fixed|added|removed|rotated|running|doing|testing|planned|expected)\b",
    re.IGNORECASE,
)
_PARTS: Final = re.compile(r"[-_./:]")


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement. `author` is empty if unknown; `denied` lists what it says is not the cause."""

    author: str
    text: str
    denied: tuple[str, ...]

    def rules_out(self, *names: str) -> bool:
        """Whether a product, or a kind of trouble, is among what it denies."""
        return any(_is_same(thing, name.lower()) for thing in self.denied for name in names if name)


def said_by(who: str) -> str:
    return f"Said by {who}."


def is_log_line(text: str) -> bool:
    return _PASTED.match(text) is not None


def is_alert(text: str) -> bool:
    return _ALERT.match(text) is not None


def is_statement(text: str) -> bool:
    if "?" in text or is_log_line(text) or is_alert(text):
        return False
    return _ASKS.match(text) is None and _ASKED_ON.search(text) is None


def asking(messages: Sequence[Message]) -> Sequence[Message]:
    """What people asked, oldest first; the first message of a thread asks whatever its form."""
    said = [m for m in messages if m.role is Role.USER and m.text.strip()]
    return [m for m in said if m is said[0] or not is_statement(m.text)]


def states_fact(text: str) -> bool:
    """Whether it says what is ruled out, done, or when; thanks do not count."""
    if not is_statement(text) or not len(text.split()) >= _FEWEST_WORDS or len(text) > _LONGEST:
        return False
    return any(_denied(text)) or bool(_CLOCK.search(text) or _DID.search(text))


def stated(messages: Sequence[Message]) -> Sequence[Stated]:
    """The facts of people behind the first question, oldest first."""
    said = [m for m in messages if m.role is Role.USER and m.text.strip()]
    return [
        Stated(_author(m.told), m.text.strip(), tuple(_denied(m.text)))
        for m in said[1:]
        if states_fact(m.text)
    ]


def _author(told: str) -> str:
    found = _SAID_BY.search(told)
    return found[1] if found else ""


def _denied(text: str) -> Iterator[str]:
    for pattern in (_IT_IS_NOT, _IS_NOT_IT):
        for found in pattern.finditer(text[:_LONGEST]):
            yield found[1].lower().rstrip(".,;:!")


def _is_same(thing: str, name: str) -> bool:
    if thing == name or name.startswith((f"{thing}-", f"{thing}/", f"{thing}_")):
        return True
    alike = _KINDS.get(thing, frozenset())
    return bool(alike & {name, *_PARTS.split(name)})
