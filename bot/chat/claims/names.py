"""Names in a sentence: versions, times, days, hosts, products, identifiers; and whether a result has them.

A name is known by its shape, by its place ("the logs of …"), or because another result has it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.chat.claims.lexicon import plain, words_of

_ISO = re.compile(
    r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d)?(?:\.\d{1,9})?(?:Z|\+00:?00)?(?!\w)"
)
_DATE = re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d(?![\w-])")
_CLOCK = re.compile(
    r"(?<![\w:.-])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?(?![\d:])(?:[ \u00a0]?([AaPp]\.?[Mm]\b\.?))?"
    r"(?:[ \u00a0]?\(?((?:UTC|GMT)?[+-]\d{1,2}(?::?\d\d)?(?!\d)|(?:UTC|GMT|Z|CEST|CET|EEST|EET|WEST|WET|MSK|BST|EST|EDT|CST|CDT|MST|MDT|PST|PDT|"
    r"BRT|IST|SGT|HKT|JST|KST|AEST|AEDT|NZST|NZDT)\b)|[ \u00a0]?\(?((?:E|C|M|P)T\b|local\b|your\b|[A-Z][A-Za-z]{2,20} time\b))?"
)
_ZONES = {
    "CET": 60, "CEST": 120, "EET": 120, "EEST": 180, "WET": 0, "WEST": 60, "MSK": 180, "BST": 60, "EST": -300, "EDT": -240,
    "CST": -360, "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "BRT": -180, "IST": 330, "SGT": 480,
    "HKT": 480, "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780,
}  # fmt: skip
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d\d)?")
_ONSET = re.compile(
    r"(?:since|began|begins|begin|started|starts|start|onset|from)(?: at| around| about)?\s$",
    re.IGNORECASE,
)
_ROUGHLY = re.compile(
    r"(?:about|around|roughly|approximately|shortly after|just after|shortly before|just before|~|≈)\s?$",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"[v\d](?<![\w./-].)(?:(?<=v)\d{1,6}(?:\.\d{1,6}){0,4}|(?<=\d)\d{0,5}(?:\.\d{1,6}){2,4})(?:[-+][A-Za-z0-9.]{1,30})?(?![\w/]|\.\d|-\d)"
)
_LETTER = r"A-Za-z\u0130\u0131\u017f\u212a"  # `[a-z]` in any case, and faster
_SHAPED = re.compile(
    rf"[{_LETTER}](?<![\w./@-].)[{_LETTER}0-9]{{0,40}}(?:[-_.][{_LETTER}0-9]{{1,40}}){{1,12}}(?![\w@]|[-_.]\w)"
)
_IP = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_DIGIT = re.compile(r"\d")
_JOINED = re.compile(rf"[-_.][{_LETTER}0-9]")  # what all of `_SHAPED` have
_HEX = re.compile(
    r"[0-9a-f](?<![\w-].)(?=[0-9a-f]{6})(?:(?<=\d)|(?=[0-9a-f]{0,38}\d))(?:(?<=[a-f])|(?=[0-9a-f]{0,38}[a-f]))"
    r"[0-9a-f]{6,39}(?![\w-])"
)
_CAMEL = re.compile(
    r"[A-Z](?<![\w.-].)(?:[a-z]{1,20}(?:[A-Z][a-z]{1,20}){1,5}|[A-Z]{1,5}[a-z]{2,20})(?![\w-]|\.\w)"
)
_NO_CAMEL = frozenset(
    ["postgresql", "mysql", "rabbitmq", "pagerduty", "github", "gitlab", "javascript", "opentelemetry", "replicaset", "statefulset", "daemonset", "configmap", "networkpolicy", "victoriametrics", "cloudwatch", "dynamodb", "mongodb", "graphql", "pods", "apis", "ids", "urls"]
)  # fmt: skip
_CODE = re.compile(r"`([^`\n]{1,200})`")
_CODE_NAME = re.compile(r"[A-Za-z][\w./:@-]{1,120}")
_TOKEN = re.compile(r"[A-Za-z](?<![\w.-].)[A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+){0,12}(?![\w-])")
_OF = re.compile(
    r"\b(?:deploy(?:ment)?|rollout|release|rollback|logs?|warnings?|errors?|pods?|latency|p9\d|traffic|requests|"
    r"cpu|memory|metrics|figures|service|product|host|node|container|database|time is spent|calls?|version|replicas|"
    r"connections?) "
    r"(?:of|in|on|for|from|to) (?:the )?([a-z][\w-]{1,60})",
    re.IGNORECASE,
)  # fmt: skip
_KIND_OF = re.compile(
    r"(?<![\w-])(?:service|product|host|pod|node|container|namespace|app) ([a-z][\w-]{1,60})",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"(?<![\w-])([A-Za-z][\w-]{1,60})['’]s? (?:p\d\d|latency|errors?|error|logs?|pods?|pool|cpu|memory|traffic|connections?|warnings|deploy|version|disk|database)"
)
_BY = re.compile(
    r"\b(?:deployed|released|shipped|pushed|rolled out|rolled back|started|triggered) by ([a-z][\w.-]{1,60})",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:^|[,;:] |\band )\W{0,3}([A-Za-z][\w-]{1,60}) (?:is|was|has been|became|went) (?:saturated|slow|slower|down|failing|crashing|unhealthy|overloaded|deployed|abnormal|degraded)"
)
_SUFFIX = re.compile(
    r"-(?:db|api|svc|service|worker|cache|gateway|prod|primary|replica|proxy|server|store|queue|broker|redis|postgres|mysql|kafka|frontend|backend|web|app|cluster|node|pool)$"
)
# Words in the position of a name that are not names.
_GENERIC = frozenset(
    ["a", "an", "the", "its", "it", "this", "that", "these", "those", "them", "their", "our", "your", "his", "her", "all", "any", "both", "each", "every", "either", "some", "most", "many", "more", "few", "one", "two", "three", "other", "others", "another", "such", "same", "own", "which", "what", "who", "whom", "where", "when", "latency", "latencies", "error", "errors", "traffic", "request", "requests", "response", "responses", "cpu", "memory", "disk", "pool", "pools", "queue", "database", "databases", "db", "cache", "service", "services", "product", "products", "host", "hosts", "pod", "pods", "node", "nodes", "container", "containers", "replica", "replicas", "deploy", "deploys", "deployment", "deployments", "release", "releases", "rollback", "rollout", "change", "changes", "version", "versions", "metric", "metrics", "log", "logs", "line", "lines", "warning", "warnings", "trace", "traces", "span", "spans", "baseline", "window", "time", "times", "minute", "minutes", "hour", "hours", "second", "seconds", "day", "days", "everything", "nothing", "something", "anything", "there", "here", "now", "then", "so", "and", "or", "but", "not", "no", "is", "was", "were", "are", "be", "been", "being", "has", "have", "had", "p50", "p90", "p95", "p99", "p999", "production", "prod", "staging", "test", "default", "system", "user", "users", "customer", "customers", "call", "calls", "connection", "connections", "saturation", "usage", "load", "limit", "limits", "cause", "evidence", "question", "answer", "incident", "incidents", "page", "pages", "runbook", "upstream", "downstream", "client", "clients", "server", "servers", "application", "app", "apps", "platform", "cluster", "namespace", "workflow", "workflows", "event", "events", "average", "mean", "median", "peak", "maximum", "minimum", "slow", "fast", "high", "low", "up", "down", "above", "below", "about", "around", "over", "under", "only", "roughly", "nearly", "almost", "at", "in", "on", "of", "for", "from", "to", "with", "within", "without", "while", "responder", "responders", "oncall", "on-call", "people", "team", "somebody", "nobody", "new", "old", "previous", "last", "first", "later", "earlier", "worker", "main", "api", "data", "names", "name", "since", "until", "before", "after", "during", "because", "neither", "none", "hand", "code", "job", "jobs", "scheduled", "normal", "usual", "it's", "details", "total", "every", "kubernetes", "range", "health", "timeouts", "timeout", "order", "orders", "checks", "results", "result", "status", "state", "failed", "failing", "successful", "affected", "dependent", "dependents", "callers", "caller", "itself", "p75", "throughput", "volume", "rate", "rates", "ratio", "figures", "takes", "took", "waits", "left", "fail", "fails", "serves", "works", "runs", "crashes", "restarts", "spends", "writes", "answers", "gets", "accepts", "allows", "also", "appears", "became", "becomes", "began", "begins", "behaves", "belongs", "blocks", "came", "can", "cannot", "closes", "connects", "continues", "could", "deletes", "denies", "depends", "did", "died", "does", "drops", "drains", "exceeds", "exists", "expects", "finds", "finished", "goes", "got", "grows", "handles", "hangs", "hit", "hits", "holds", "keeps", "kept", "knows", "lacks", "listens", "looks", "loses", "lost", "lowers", "may", "might", "must", "needs", "never", "opens", "owns", "prints", "queues", "raises", "reads", "receives", "recovers", "refuses", "rejects", "remains", "replies", "reported", "reports", "responded", "responds", "retries", "returned", "returns", "said", "says", "seems", "seen", "sees", "sends", "shares", "showed", "shows", "shuts", "starts", "stays", "still", "stops", "throws", "tries", "ultimately", "uses", "went", "will", "would"]
)  # fmt: skip
MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written. `kind`: clock, onset, elsewhere (a clock of a zone that is not known), date, version, id, or name."""

    text: str
    kind: str
    key: str  # what to look for
    margin_min: int = 0


def names(text: str, vocabulary: frozenset[str]) -> tuple[list[Name], str]:
    """The names of a sentence, and the sentence with versions, times and ids blanked out."""
    found: list[Name] = []
    rest = text
    for needs, pattern, make in _SHAPES if _DIGIT.search(text) else ():
        if needs in rest and (matches := list(pattern.finditer(rest))):
            for match in matches:
                found.extend(make(match, rest))
            rest = _without(matches, rest)
    found.extend(_in_code(rest))
    shaped = list(_SHAPED.finditer(rest)) if _JOINED.search(rest) else []
    found.extend(name for match in shaped for name in _shaped(match, rest))
    found.extend(_by_place(rest))
    found.extend(_known(rest, vocabulary))
    rest = _without(shaped, rest)
    unique = {(name.kind, name.key): name for name in reversed(found)}
    return list(reversed(unique.values()))[:MOST_NAMES], rest


def _without(matches: Sequence[re.Match[str]], text: str) -> str:
    if not matches:
        return text
    pieces: list[str] = []
    at = 0
    for match in matches:
        pieces += (text[at : match.start()], " " * len(match[0]))
        at = match.end()
    return "".join([*pieces, text[at:]])


def _iso(match: re.Match[str], _: str) -> Iterator[Name]:
    yield Name(match[1], "date", match[1])
    yield Name(match[2], "clock", match[2])


def _date(match: re.Match[str], _: str) -> Iterator[Name]:
    yield Name(match[0], "date", match[0])


def _clock(match: re.Match[str], text: str) -> Iterator[Name]:
    before = text[max(0, match.start() - 24) : match.start()]
    hour = int(match[1])
    if match[3]:
        hour = hour % 12 + (12 if match[3][0] in "pP" else 0)
    minutes = (hour * 60 + int(match[2]) - _ahead(match[4] or "")) % 1440
    kind = "elsewhere" if match[5] else "onset" if _ONSET.search(before) else "clock"
    margin = 5 if _ROUGHLY.search(before) else 0
    yield Name(match[0].strip(), kind, f"{minutes // 60:02d}:{minutes % 60:02d}", margin)


def _ahead(zone: str) -> int:
    if offset := _OFFSET.fullmatch(zone):
        size = int(offset[2]) * 60 + int(offset[3] or 0)
        return size if offset[1] == "+" else -size
    return _ZONES.get(zone, 0)


def _version(match: re.Match[str], _: str) -> Iterator[Name]:
    yield Name(match[0], "version", match[0].lower().removeprefix("v"))


def _id(match: re.Match[str], _: str) -> Iterator[Name]:
    yield Name(match[0], "id", match[0].lower())


def _camel(match: re.Match[str], _: str) -> Iterator[Name]:
    if match[0].lower() not in _NO_CAMEL:
        yield Name(match[0], "name", match[0].lower())


def _shaped(match: re.Match[str], _: str) -> Iterator[Name]:
    word = match[0].lower()
    parts = re.split("[-_.]", word)
    has_digit = any(any(c.isdigit() for c in part) and len(parts[0]) > 1 for part in parts[1:])
    if (
        ("-" in word and (has_digit or _SUFFIX.search(word)) and parts[0] not in _NOT_HOSTS)
        or ("_" in word and len(parts) >= 2)
        or ("." in word and (len(parts) >= 3 or _HUMPED.search(match[0])))
    ):
        yield Name(match[0], "name", word)


_TO = frozenset(["of", "in", "on", "for", "from", "to"])
_HAVES = frozenset(
    ["deploy", "deployment", "rollout", "release", "rollback", "log", "logs", "warning", "warnings", "error", "errors", "pod", "pods", "latency", "traffic", "requests", "cpu", "memory", "metrics", "figures", "service", "product", "host", "node", "container", "database", "spent", "call", "calls", "version", "replicas", "connection", "connections"]
)  # fmt: skip
_KINDS = frozenset(["service", "product", "host", "pod", "node", "container", "namespace", "app"])
_IS = frozenset(["is", "was", "has", "became", "went"])
_HUMPED = re.compile(r"[a-z][A-Z]")  # OrderController.create
_NOT_HOSTS = frozenset(
    ["utf", "sha", "top", "covid", "re", "non", "pre", "post", "per", "sub", "multi", "half", "on",
     "in", "all", "one", "two", "up", "end", "to", "out", "self", "long", "short", "high",
     "low", "p99", "p95", "p50", "web-based"]
)  # fmt: skip
# What each is not without, beside a digit, its pattern, and what it makes of a match.
_SHAPES = (
    (":", _ISO, _iso), ("-", _DATE, _date), (":", _CLOCK, _clock), (".", _IP, _id), ("", _VERSION, _version),
    ("", _HEX, _id),
)  # fmt: skip


def _in_code(text: str) -> Iterator[Name]:
    for match in _CODE.finditer(text):
        word = match[1].strip()
        if _CODE_NAME.fullmatch(word) and word.lower() not in _GENERIC:
            yield Name(word, "code", word.lower())


def _by_place(text: str) -> Iterator[Name]:
    for match in _CAMEL.finditer(text):
        yield from _camel(match, text)
    there = words_of(text)
    for pattern in _likely_places(text, there):
        for match in pattern.finditer(text):
            word = match[1].lower().rstrip("-")
            if word not in _GENERIC and not word.endswith(("ing", "ly", "ed")) and len(word) > 2:
                yield Name(match[1], "place", word)


def _likely_places(text: str, there: frozenset[str]) -> Iterator[re.Pattern[str]]:
    if not _TO.isdisjoint(there) and (not _HAVES.isdisjoint(there) or "p9" in plain(text)):
        yield _OF
    if not _KINDS.isdisjoint(there):
        yield _KIND_OF
    if "'" in text or "’" in text:
        yield _OWNED
    if "by" in there:
        yield _BY
    if not _IS.isdisjoint(there):
        yield _SUBJECT


def _known(text: str, vocabulary: frozenset[str]) -> Iterator[Name]:
    for match in _TOKEN.finditer(text):
        word = match[0].lower()
        if word in vocabulary and word not in _GENERIC:
            yield Name(match[0], "name", word)


# A name that is known by its place ends at its first point: `node ip-10-0-1-7.internal`.
_AFTER = {"version": r"(?!\.\d|[a-z0-9])", "place": r"(?![a-z0-9])"}


def folded(text: str) -> str:
    """Letters and digits alone: quotations have other marks between them."""
    if text.isascii():
        return " ".join(text.translate(_TO_FOLDED).split())
    return _MARKS.sub(" ", text.lower()).strip()


_MARKS = re.compile(r"[\W_]+")
# Many times faster than the pattern, which long results are folded with.
_TO_FOLDED = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_BESIDE = re.compile(r"[a-z0-9.]")


def stands_in(name: Name, text: str) -> bool:
    """Whether the lower-case text has the name as a word, or as the beginning of a longer name."""
    after = _AFTER.get(name.kind, r"(?!\.?[a-z0-9])")
    before = r"(?<![a-z0-9])(?:v)?(?<!\d\.)" if name.kind == "version" else r"(?<![a-z0-9])"
    at = text.find(name.key)
    if at < 0:
        return name.kind == "place" and name.key.endswith("s") and name.key[:-1] in text
    # If the first match is a whole word, no pattern is needed.
    if not _BESIDE.search(text[max(0, at - 1) : at] + text[at + len(name.key) :][:1]):
        return True
    return re.search(before + re.escape(name.key) + after, text) is not None
