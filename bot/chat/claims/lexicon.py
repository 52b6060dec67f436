"""The words that a checked sentence may consist of. A word that is not here is not understood."""

import re
from enum import StrEnum
from typing import Final

# Letters that a pattern in any case takes for these.
_SAME: Final = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
_RUN: Final = re.compile(r"[a-z0-9]+")


def plain(text: str) -> str:
    """Lower case as a pattern in any case sees it."""
    return (text if text.isascii() else text.translate(_SAME)).lower()


def words_of(text: str) -> frozenset[str]:
    """The runs of letters and digits of a text."""
    return frozenset(_RUN.findall(plain(text)))


class Word(StrEnum):
    PRESENT = "present"  # is so now
    PLAIN = "plain"  # says nothing that could be wrong
    WAY = "way"  # up, down, flat, odd
    RECOVERED = "recovered"
    SATURATED = "saturated"
    DEPLOYED = "deployed"
    REVERTED = "reverted"
    REPLACED = "replaced"
    FAILS = "fails"
    SAYS = "says"
    MENTIONS = "mentions"
    SPENDS = "spends"
    UNAVAILABLE = "unavailable"
    STATE = "state"
    ROLE = "role"
    NOUN = "noun"
    NOT = "not"
    NONE = "none"
    ALL = "all"
    ONLY = "only"
    NEW = "new"
    GONE = "gone"
    SEEN = "seen"
    BEGAN = "began"
    NEWEST = "newest"
    OLDEST = "oldest"
    USUAL = "usual"
    FROM = "from"
    TO = "to"
    BY = "by"
    MEAN = "mean"
    MOST = "most"
    LEAST = "least"
    BETWEEN = "between"
    TOOK = "took"
    ZSCORE = "zscore"
    SINCE = "since"
    UNTIL = "until"
    AND = "and"
    BREAK = "break"
    SOFT = "soft"  # a cause, an order, a possibility: other rules decide, or nothing does


# The replacement, letters that all its phrases contain one of, and the phrases.
_PHRASES: Final = (
    ("recovered", "normal usual baseline fine healthy well flat over", r"back to (?:its |the |their )?(?:normal|usual|baseline)(?: (?:level|values?))?|(?:usual|normal|fine|healthy|well|flat) again|"
                  r"returned to (?:its |the |their )?(?:normal|usual|baseline)(?: level)?|back (?:at|within|in|on) (?:its |the |their )?(?:normal|usual|baseline)(?: (?:range|level|values?))?|went back to normal|(?:is|are|was) over\b(?! \d)|as usual again"),
    ("deployed", "went rolled pushed put", r"went out|rolled out|went live|was pushed out|was put live|was put into production"),
    ("reverted", "back", r"rolled back|was rolled back|taken back"),
    ("replaced", "took taking place from instead", r"took over from|taking over from|in place of|taking the place of|took the place of|up from(?= v?\d+\.\d+\.)|instead of(?= v?\d)"),
    # "Slower than usual" is a change; "slower than cart" compares two services, which no rule does.
    ("versus", "than", r"(?<!rather )(?<!earlier )(?<!later )than(?= (?:(?:in|on|of|for|that|those|the [a-z]+ of) )*[a-z])(?! (?:(?:its|their|the|it|they|was|a|an|is|were|in|at) )*(?:usual\w*|normal\w*|"
               r"baselines?|before|expected|ever|twice|half|doubled?|tripled|quadrupled|[a-z]+fold|one|two|three|four|five|six|seven|eight|nine|ten|yesterday|last|previous|any|all|other|day|week|hour|minute|second|average)\b)"),
    ("unavailable", "could answer not", r"could not be (?:read|reached|loaded|queried|had|fetched)|couldn['’]t be (?:read|reached|loaded|queried|fetched)|did not answer|gave no answer|"
                    r"(?:is|are|was|were) not (?:available|reachable)"),
    ("nodata", "no", r"no (?:data|samples|values|data points)"),
    ("latency", "response duration latency", r"response times?|request durations?|latency at p\d\d\d?|tail latency"),
    ("errors", "error fail", r"error (?:ratio|rate|share)|failure (?:rate|ratio)|rate of errors|share of failed requests"),
    ("traffic", "request", r"request rate|requests per second|number of requests|rate of requests"),
    ("pool", "pool connection", r"connections? in use|connection pool(?: usage)?|pool usage|pool of connections"),
    ("cpu", "cpu", r"cpu (?:usage|utili[sz]ation|load)"),
    ("memory", "memory", r"memory (?:usage|use|footprint)"),
    ("disk", "disk", r"disk (?:usage|space)"),
    ("errors line", "error", r"error (?:lines?|messages?|logs?|entries)|lines? of errors?"),
    ("line", "log", r"log lines?|log messages?"),
    ("queue", "queue lag backlog", r"queue (?:depth|length|size)|consumer lag|message backlog"),
    ("normally 0", "none", r"none (?:before|earlier|previously)"),
    ("unchanged", "changed moved", r"(?:has|have|had) not (?:changed|moved)|(?:has|have|had)n['’]t (?:changed|moved)"),
    ("unaffected", "affected impacted", r"not (?:been )?(?:affected|impacted)|unimpacted"),
    ("way-up", "high", r"(?:still|very|too|unusually|remains?|stays?|stayed) high"),
    ("the", "other remaining", r"the (?:other|remaining)(?= \d)"),
    ("", "only", r"only(?= (?:(?:took|takes|spent|spends|uses|used|waits|waited) )?\d[\d.,]* ?(?:%|[µmn]?s|min|seconds?|minutes?|[KMG]i?B)(?!\w))"),
    ("oomkilled", "oom memory", r"oom[- ]?kill(?:ed|ing)|killed for (?:its )?memory"),
    ("newest", "last latest newest recent", r"(?:the )?(?:last|latest|newest|most recent)(?= (?:error|warning|log|line|message|one))"),
    ("oldest", "first earliest oldest", r"(?:the )?(?:first|earliest|oldest)(?= (?:error|warning|log|line|message|one))"),
    ("", "asked", r"you asked about"),
    ("altogether", "in", r"in all|in total|all in all"),
    ("zscore", "score", r"z[- ]scores?(?: of)?"),
    ("rps", "req", r"requests? (?:a|per) second|reqs?/s|requests/s"),
    ("gone", "longer stopped disappeared ceased away none", r"no longer (?:writes|logs|appears?|seen|logged|occurs?)|(?:have |has )?stopped(?: (?:logging|writing|appearing))?|"
             r"(?:have |has )?(?:disappeared|ceased)|went away|none now"),
    ("endedat", "none sample", r"none (?:since|after)|no sample of it after"),
    ("warninglines", "warn", r"warn(?:ing)? lines?"),
    ("latency rose", "slow", r"slowed down|slows down|became slower?|got slower"),
    ("latency fell", "sped faster", r"sped up|got faster|became faster"),
    ("mosttime", "most", r"most of (?:the|its) time"),
    ("out", "out", r"out of(?= (?:its|the) baseline)"),
    ("to 0", "nothing", r"to nothing"),
    ("unready", "ready", r"not ready"),
    ("", "well to", r"as well(?: as)?|well (?=above|below|over|beyond)|to (?:roll ?out|deploy|complete|finish)"),
    ("lasted", "for", r"for(?= (?:about |around |roughly )?\d[\d.]* ?(?:s|sec|seconds?|m|min|mins|minutes?|h|hours?)(?!\w))"),
    ("max under", "exceed above below under", r"(?:never|not) (?:exceed(?:ed|s)?|(?:went|rose) above)|(?:did|does) not exceed|stayed (?:below|under)"),
    ("in", "over", r"over(?= (?:the|this|that|these|all)\b)"),
)  # fmt: skip
PHRASES: Final = tuple(
    (
        re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE),
        tuple(needs.split()),
        f" {word} ",
    )
    for word, needs, pattern in _PHRASES
)

_WORDS: Final[dict[Word, str]] = {
    Word.PLAIN: """a an the of in on at with its it their them they this that these those which who was were be been being
        had having as also here there utc gmt z about around roughly approximately nearly almost circa ca some
        shortly service product app application host system time value values level total altogether overall together
        very clearly well-known own itself themselves per each second seconds minute minutes hour hours ago today
        for during within same such like following below above shown see reports reported reporting shows show showed
        measured reads lists listed there's it's stands stood sits sat reached reaching hit hitting
        high up baseline's times x operation request requests call calls endpoint trace spans
        data figures metric metrics signal window range minutes kubernetes k8s cluster says according get gets receives received
        made make in total out went go goes one past window's kind kinds fold share ratio rate rates just
        did does do will users namely i.e e.g percent warns warning name named whose where when more than over least beyond exceeds exceeded under fewer less
        stayed remained kept again further version release's answered
        way like old log logs entry usage use seems-not level's state status full place load
        handles handle serves processes processed sees happened happens occurred recorded currently across looks look became live
        warned followed used similar matching matches match long far much significantly sharply dramatically considerably steadily gradually
        suddenly slightly noticeably""",
    Word.PRESENT: "is are has have now currently still stay stays remains keeps",
    Word.RECOVERED: "recovered recovers recovering recovery",
    Word.SATURATED: "saturated exhausted maxed",
    Word.DEPLOYED: "deployed released shipped deploys deploy deployment release rollout pushed launched deploying installed upgraded updated",
    Word.REVERTED: "reverted rollback undone",
    Word.REPLACED: "replaced replacing replaces superseded superseding supersedes succeeded-by",
    Word.FAILS: "fail fails failing failed failures erroring",
    Word.SAYS: "say saying says logged logs-that wrote writes write written contain contains containing logging such-as example",
    Word.MENTIONS: "mention mentions mentioning naming names",
    Word.SPENDS: "spends spend spent takes take costs lose loses lost accounts",
    Word.UNAVAILABLE: "unavailable unreachable nodata",
    Word.STATE: """running run runs ready crashing crashed crashloopbackoff crashloop pending unscheduled evicted oomkilled killed unready restarting
        completed notready imagepullbackoff errimagepull terminated active backoff healthy well warn warnings over""",
    Word.NOUN: """warninglines restarted pod pods replica replicas container containers node nodes deploys-count line lines message messages event events
        incident incidents trace traces span workflow workflows restarts restart resource resources mosttime pages page entries
        deployments replicaset statefulset""",
    Word.NOT: "not n't never neither nor isn't aren't wasn't weren't didn't doesn't don't hasn't haven't hardly cannot can't",
    Word.NONE: "no none zero without",
    Word.ALL: "all both every entire whole always everything everywhere everybody everyone any",
    Word.ONLY: "only solely alone exclusively sole merely nothing nobody elsewhere",
    Word.NEW: "new newly frequent more grew-lines additional",
    Word.GONE: "gone",
    Word.SEEN: "seen found observed come comes came appear appears originate originates",
    Word.BEGAN: "began begin begins beginning starts started start starting appeared onset",
    Word.NEWEST: "newest",
    Word.OLDEST: "oldest",
    Word.MEAN: "averaged averages average averaging mean",
    Word.MOST: "peaked peaks peak peaking max maximum highest worst",
    Word.LEAST: "minimum min lowest",
    Word.BETWEEN: "between ranged ranges ranging",
    Word.USUAL: "usual usually normal normally normal-value typically baseline before previously earlier formerly was-at compared against versus vs",
    Word.FROM: "from",
    Word.TO: "to",
    Word.BY: "by",
    Word.TOOK: "took lasted lasting duration waiting waits waited wait",
    Word.ZSCORE: "zscore score",
    Word.SINCE: "since onwards",
    Word.UNTIL: "until endedat",
    Word.AND: "and but while whereas plus or",
    Word.BREAK: ", ; : ( ) — – [ ]",
    Word.SOFT: """because cause causes caused causing due culprit blame blamed responsible reason reasons led leads trigger triggers triggered
        explain explains explained therefore thus hence so likely probably perhaps maybe possibly presumably apparently suspected suspect suspects suspicion
        may might could would should can must if whether unless although though despite however after then first afterwards later next prior
        once seem seems appear appears suggests suggest indicates points consistent correlates unrelated related result results resulting consequence
        versus affected unaffected impact impacted expected actually meanwhile yet too already soon""",
}  # fmt: skip
_ROLE_WORDS: Final = {
    "latency": "latency latencies p50 p75 p90 p95 p99 p999 slower slowness",
    "errors": "error errors 5xx",
    "traffic": "traffic throughput rps qps",
    "cpu": "cpu",
    "memory": "memory heap rss",
    "disk": "disk disks storage",
    "pool": "pool pools connections",
    "queue": "queue queues backlog",
}
CLASSES: Final[dict[str, Word]] = {
    word: kind for kind, words in _WORDS.items() for word in words.split()
} | {word: Word.ROLE for words in _ROLE_WORDS.values() for word in words.split()}
ROLE_OF: Final = {word: role for role, words in _ROLE_WORDS.items() for word in words.split()}
# What a word says that the figure, the time or the version behind it is.
SLOTS: Final = {
    Word.USUAL: "usual", Word.FROM: "usual", Word.REPLACED: "usual", Word.TO: "now", Word.SINCE: "since", Word.UNTIL: "until",
    Word.BY: "change", Word.TOOK: "took", Word.ZSCORE: "z", Word.MEAN: "mean", Word.MOST: "max", Word.LEAST: "min",
    Word.BETWEEN: "min",
}  # fmt: skip
NOUN_OF: Final = {
    "pods": "pod", "replicas": "replica", "containers": "container", "nodes": "node", "lines": "line", "messages": "line",
    "message": "line", "events": "event", "incidents": "incident", "traces": "trace", "spans": "span", "workflows": "workflow",
    "deploys": "deploy", "deployments": "deploy", "deployment": "deploy", "releases": "deploy", "rollouts": "deploy",
    "release": "deploy", "rollout": "deploy", "restart": "restarts", "restarted": "restarts", "warninglines": "warning", "errors": "line", "error": "line", "warnings": "warning",
    "resources": "resource", "pages": "page", "entries": "line", "failures": "line",
}  # fmt: skip
STATE_OF: Final = {
    "run": "running", "runs": "running", "crashed": "crashing", "crashloop": "crashing", "warn": "warning",
    "warnings": "warning", "active": "running", "well": "running",
}  # fmt: skip
