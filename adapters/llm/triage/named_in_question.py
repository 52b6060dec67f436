"""The names in a question: a product, as it is spelled or nearly so, and names that are no product."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.triage.intents import ROLE_WORDS
from adapters.llm.triage.meaning import KNOWN_WORDS, is_known_word

_WORD: Final = re.compile(r"[\w./:@-]+")
# Where a product's name would be; the words must differ from ordinary ones.
_SPOKEN_OF: Final = re.compile(
    r"\b(?:(?:is|are|was|were)\s+(?:the\s+)?([a-z][\w-]+)\s+(?:so\s+|still\s+|really\s+)?"
    r"(?:slow|down|broken|failing|fine|ok|okay|healthy|up|degraded|unavailable)\b"
    r"|(?:changed in|logs of|logs for|wrong with)\s+(?:the\s+)?([a-z][\w-]+)"
    r"|(?:(?:what|how) about|did you (?:check|look at|consider))\s+(?:the\s+)?(?:new\s+|old\s+)?([a-z][\w-]+)(?:\s+service)?\W*$)"
)
_TROUBLE: Final = (
    r"(?:alert(?:s|ed|ing)|fir(?:es|ed|ing)|pag(?:es|ed|ing)|fail(?:s|ed|ing)|crash(?:es|ed|ing)|down"
    r"|broken|slow|red|flapping|dead|degraded|unhealthy"
    r"|(?:has|have|had) (?:many |some )?(?:alerts|errors|problems|issues|timeouts|trouble))\b"
)
_NAME: Final = r"(?:our |the )?([a-z][\w-]{2,})"
# "Why does ghost alert?", "ghost is alerting", "an alert on ghost", "check ghost"
_COMPLAINED_OF: Final = re.compile(
    rf"\b(?:why|how come|when|did|does|do|is|are|was|has|would) {_NAME} (?:still |so |now )?"
    rf"(?:{_TROUBLE}|(?:alert|page|fire|crash|fail)\b)"
    rf"|^\W*{_NAME} (?:(?:is|was|are|keeps|went) )?(?:still |so |now |again )?{_TROUBLE}"
    r"|\b(?:alert\w*|alarm\w*|paged?|pages|firing|fired|(?:any|some)thing|going on|up|problems?|issues?|"
    r"trouble|happen(?:s|ed|ing)|errors?) (?:on|for|from|about|with|by|of|in) "
    rf"{_NAME}(?: (?:today|now|again|please|since|at|right)\b.*)?\W*$"
    rf"|^\W*(?:please |can you |could you )?(?:investigate|check|look (?:at|into)) {_NAME}\W*$"
)
_NO_PRODUCT_WORDS: Final = """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december weekend general particular detail details total high
    low further progress common kortex bot none never two three others resolved active target start
    end copy time key file text line build code result dashboard monitoring team colleagues anywhere
    nowhere thread channel slack probe probes
    unusual anomaly anomalies performance overview diagnose diagnosis debug revenue data slowness
    complaint complaints unhappy angry increase regression suspicious theory theories thought
    thoughts opinion healthcheck sanity maintenance dependencies urgent emergency sev1 sev2 sev3
    major minor green alive stable concern concerns peak half deadlock attack ddos noisy thundering
    exit image cancelled roll different notes attached rolling having isn percent milliseconds seconds cores bytes megabytes gigabytes
    both hotfix upstreams canary slowest busiest
"""
_NO_PRODUCT: Final = frozenset(_NO_PRODUCT_WORDS.split())
# `billing-svc`, where a name would be.
_SHAPED: Final = re.compile(
    r"(?:^\W*|\b(?:is|are|and|of|for|in|on|check|about|with)\s+)([a-z][a-z0-9]*(?:-[a-z0-9]+)+)\b"
)
_A_SERVICE: Final = re.compile(
    r"(?<![\w.-])([a-z][\w.-]+)\s+(?:micro-?)?service\b(?!\s+(?:mesh|account|level))"
)
_ANY_SERVICE: Final = frozenset(
    {"an", "another", "one", "other", "some", "no", "first", "single", "my", "your", "their", "its",
     "whose", "same", "main", "whole", "new", "old", "right", "web", "affected", "failing", "broken",
     "slow", "unhealthy", "downstream", "upstream", "external", "internal", "dependent", "backend",
     "frontend", "customer", "critical"}
)  # fmt: skip
_STORES: Final = frozenset({"database", "db", "cache", "queue"})
_IS_PLURAL: Final = re.compile(
    r"\b(?:are|were|many|lost|losing|any) (?:the |our |some )?$"
)  # "are orders lost?"
_NOBODY: Final = frozenset(
    {"it", "this", "that", "there", "everything", "something", "anything", "all", "things", "we",
     "they", "you", "what", "which", "who", "not", "the", "last", "our", "us", "system", "site",
     "production", "prod", "staging", "dev", "test", "today", "yesterday", "tonight", "now", "me",
     "errors", "warnings", "exceptions", "timeouts", "failures", "crashes", "each", "every", "any"}
)  # fmt: skip
# Next to these words a known name is a product, not a word of English ("search for errors").
_BEFORE_WORDS: Final = "the in of for with about from on is are was deployed released"
_BEFORE_NAME: Final = frozenset(_BEFORE_WORDS.split())
_AFTER_NAME: Final = frozenset(
    {"is", "are", "was", "fails", "failing", "slow", "down", "broken", "errors", "latency", "logs",
     "pods", "deploys", "deployment"}
)  # fmt: skip
_FEWEST_LETTERS: Final = 4
_FEWEST_NAME_LETTERS: Final = 3
_MOST_WORDS: Final = 6  # of a message whose one strange word can only be a name
# Where a name stands: at the beginning, behind "is", behind "of".
_ARTICLES: Final = frozenset({"the", "our", "my"})
_OPENING: Final = frozenset(
    {"and", "but", "so", "then", "ok", "okay", "hey", "hi", "check", "status", "kortex"}
)
# Question words and the like of other languages: "was ist los?", "neden yavas?", "que pasa?".
_OTHER_LANGUAGES: Final = frozenset(
    {"wie", "warum", "wieso", "weshalb", "wer", "wann", "ist", "sind", "hat", "alles", "etwas", "nichts",
     "nicht", "geht", "gibt", "los", "kaputt", "langsam", "que", "quoi", "pourquoi", "comment", "est",
     "sont", "tout", "rien", "quel", "quelle", "por", "porque", "como", "esta", "estan", "hay", "algo",
     "todo", "donde", "tudo", "onde", "cosa", "che", "perche", "come", "tutto", "sta", "wat", "waarom",
     "hoe", "neden", "niye", "nasil", "sorun", "var", "mi", "dlaczego", "jest", "hvad", "hvorfor", "vad",
     "varfor", "miksi", "kenapa", "mengapa", "apa", "ada", "kya", "kyun", "hai"}
)  # fmt: skip
_NO_NAME: Final = _NOBODY | _ANY_SERVICE | _NO_PRODUCT | _OPENING | _OTHER_LANGUAGES
_AUXILIARY: Final = frozenset(
    {"is", "are", "was", "were", "does", "do", "did", "has", "have", "hows"}
)
_ASKS_WHAT: Final = frozenset({"what", "which", "who"})  # "what is X" asks for a meaning
_PREPOSITIONS: Final = frozenset({"of", "for", "on", "with", "in", "about", "at", "from"})
# The p99 "of ghost please"; "has ghost been", "does ghost run"; not "of slow requests", "has bob".
_BEFORE_OWNER: Final = frozenset({"of", "for", "in", "to", "does", "do"})
_AFTER_OWNER: Final = frozenset({"been", "rolled", "reverted", "deployed", "running", "use", "get"})
_VERSION: Final = re.compile(r"v?\d")
_DESCRIBED: Final = frozenset(
    {"request", "requests", "customers", "users", "clients", "calls", "pod", "pods", "endpoint"}
)
# Whose figure it is: parts of a system, and no products of most.
_COMPONENTS: Final = frozenset(
    {"gateway", "frontend", "firewall", "ingress", "nginx", "redis", "postgres", "kafka", "mongo",
     "mysql", "rabbit"}
)  # fmt: skip
_ALIKE: Final = 0.84


def spoken_of(lowered: str) -> str:
    found = _SPOKEN_OF.search(lowered)
    if found is None:
        return ""
    mentioned = found[3] or ""  # a word of the language is no name there: "what about tomorrow?"
    is_word = mentioned in KNOWN_WORDS and mentioned.removesuffix("s") not in _STORES
    name = found[1] or found[2] or ("" if is_word else mentioned)
    return "" if name in _NOBODY else name


def complained_of(lowered: str) -> str:
    """The name that a complaint is about; no word of the language."""
    found = _COMPLAINED_OF.search(lowered)
    name = next(filter(None, found.groups()), "") if found else ""
    is_word = name in _NO_NAME or re.fullmatch(ROLE_WORDS, name)
    return "" if not name or is_word or is_known_word(name[:40]) else name


def shaped_name(lowered: str) -> str:
    names = (one[1] for one in _SHAPED.finditer(lowered))
    return next((n for n in names if not KNOWN_WORDS.issuperset(n.split("-"))), "")


def unread_name(lowered: str) -> str:
    """The word in a name's place that is none of the language: "ghost?", "status of ghost"."""
    words = _words(lowered.replace("\u2019", "'").replace("'s", " is"))
    unread = {at for at, word in enumerate(words) if _is_unread(word)}
    if len(words) == len(unread) > 1:
        return ""  # of another language
    for at in sorted(unread):
        ahead = [word for word in words[:at] if word not in _ARTICLES]
        is_subject = not _AUXILIARY.isdisjoint(ahead[-1:]) and _ASKS_WHAT.isdisjoint(ahead)
        is_short = len(words) <= _MOST_WORDS and unread <= {at, at + 1}
        is_object = not _PREPOSITIONS.isdisjoint(ahead[-1:])
        if is_subject or (is_short and (is_object or _OPENING.issuperset(ahead))):
            return words[at]
    return ""


def owner_named(lowered: str, *, logs: bool) -> str:
    """The name whose figure, deploys, pods, rota or `logs` are asked for: "the p99 of ghost".

    "Search the logs for ghost" names a text, and no owner.
    """
    before = frozenset({"of", "in"}) if logs else _BEFORE_OWNER
    words = [word for word in _words(lowered) if word not in _ARTICLES]
    around = zip(words, words[1:], [*words[2:], ""], strict=False)
    return next(
        (
            word
            for ahead, word, after in around
            if (word in _COMPONENTS or (_is_unread(word) and not _VERSION.match(word)))
            and after not in _DESCRIBED
            and (ahead in before or after in _AFTER_OWNER or (ahead == "deployed" and not after))
        ),
        "",
    )


def _is_unread(word: str) -> bool:
    is_name = re.match(r"[a-z]", word) is not None and len(word) >= _FEWEST_NAME_LETTERS
    is_ordinary = word in _NO_NAME or re.fullmatch(ROLE_WORDS, word) or is_known_word(word[:40])
    return is_name and not is_ordinary


def service_named(lowered: str) -> str:
    names = (one[1] for one in _A_SERVICE.finditer(lowered))
    known = KNOWN_WORDS | _NOBODY | _ANY_SERVICE
    return next((n for n in names if n not in known and not n.endswith("est")), "")


def known_name(lowered: str, names: Sequence[str]) -> str:
    known = {name.lower() for name in names}
    words = _words(lowered)
    beside = zip(["", *words], words, [*words[1:], ""], strict=False)
    return next(
        (
            word
            for before, word, after in beside
            if word in known and (before in _BEFORE_NAME or after in _AFTER_NAME or len(words) == 1)
        ),
        "",
    )


def _words(text: str) -> list[str]:
    return [word.strip(".:-/@?!,") for word in _WORD.findall(text)]


def product_named(text: str, products: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    lowered = [word.lower() for word in _words(text)]
    by_name = {product.lower(): product for product in products}
    for word in lowered:
        if word in by_name:
            return by_name[word], ()
    if inside := _within(lowered, by_name):
        return inside
    for word in lowered:
        if len(word) < _FEWEST_LETTERS:
            continue
        begun = [p for name, p in by_name.items() if re.match(rf"{re.escape(word)}[-_./:]", name)]
        if len(begun) == 1 and not _IS_PLURAL.search(text.lower().partition(word)[0]):
            return begun[0], (f'"{word}" is taken as {begun[0]}',)
    for word in lowered:
        if len(word) < _FEWEST_LETTERS or word in KNOWN_WORDS:
            continue  # "which service" is no misspelt adservice
        alike = difflib.get_close_matches(word, by_name, 1, _ALIKE)
        if alike:
            return by_name[alike[0]], (f'"{word}" is taken as {by_name[alike[0]]}',)
    return "", ()


def _within(words: Sequence[str], by_name: Mapping[str, str]) -> tuple[str, tuple[str, ...]] | None:
    """A name that is part of a metric's name, or that differs by its plural alone."""
    for word in words:
        if inside := next((by_name[part] for part in word.split("_") if part in by_name), ""):
            return inside, ()
        near = by_name.get(f"{word}s") or by_name.get(word.removesuffix("s"))
        if near and len(word) >= _FEWEST_LETTERS:
            return near, (f'"{word}" is taken as {near}',)
    return None
