"""The words that a checked sentence may consist of. A word that is not here is not understood."""

import re
from enum import StrEnum
from typing import Final


class Word(StrEnum):
    """What a word does in a sentence."""

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
    USUAL = "usual"
    FROM = "from"
    TO = "to"
    BY = "by"
    TOOK = "took"
    ZSCORE = "zscore"
    SINCE = "since"
    UNTIL = "until"
    AND = "and"
    BREAK = "break"
    SOFT = "soft"  # a cause, an order, a possibility: other rules decide, or nothing does


_PHRASES: Final = (
    ("recovered", r"back to (?:its |the |their )?(?:normal|usual|baseline)(?: (?:level|values?))?|(?:usual|normal|fine|healthy|well|flat) again|"
                  r"returned to (?:its |the |their )?(?:normal|usual|baseline)(?: level)?|went back to normal|(?:is|are|was) over\b(?! \d)|as usual again"),
    ("deployed", r"went out|rolled out|went live|was pushed out|was put live|was put into production"),
    ("reverted", r"rolled back|was rolled back|taken back"),
    ("replaced", r"took over from|taking over from|in place of|taking the place of|took the place of|up from(?= v?\d+\.\d+\.)|instead of(?= v?\d)"),
    ("unavailable", r"could not be (?:read|reached|loaded|queried|had|fetched)|couldn['’]t be (?:read|reached|loaded|queried|fetched)|did not answer|gave no answer|"
                    r"(?:is|are|was|were) not (?:available|reachable)"),
    ("nodata", r"no (?:data|samples|values|data points)"),
    ("latency", r"response times?|request durations?|latency at p\d\d\d?|tail latency"),
    ("errors", r"error (?:ratio|rate|share)|failure (?:rate|ratio)|rate of errors|share of failed requests"),
    ("traffic", r"request rate|requests per second|number of requests|rate of requests"),
    ("pool", r"connections? in use|connection pool(?: usage)?|pool usage|pool of connections"),
    ("cpu", r"cpu (?:usage|utili[sz]ation|load)"),
    ("memory", r"memory (?:usage|use|footprint)"),
    ("disk", r"disk (?:usage|space)"),
    ("line", r"log lines?|error lines?|error messages?|lines? of errors?"),
    ("", r"you asked about"),
    ("altogether", r"in all|in total|all in all"),
    ("zscore", r"z[- ]scores?(?: of)?"),
    ("rps", r"requests? (?:a|per) second|reqs?/s|requests/s"),
    ("gone", r"no longer (?:writes|logs)|stopped (?:logging|writing)"),
    ("endedat", r"none (?:since|after)|no sample of it after"),
    ("warninglines", r"warn(?:ing)? lines?"),
    ("latency rose", r"slowed down|slows down|became slower?|got slower"),
    ("latency fell", r"sped up|got faster|became faster"),
    ("mosttime", r"most of (?:the|its) time"),
    ("out", r"out of(?= (?:its|the) baseline)"),
    ("to 0", r"to nothing"),
)  # fmt: skip
PHRASES: Final = tuple(
    (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), f" {word} ")
    for word, pattern in _PHRASES
)

_WORDS: Final[dict[Word, str]] = {
    Word.PLAIN: """a an the of in on at with its it their them they this that these those which who was were be been being
        had having as also here there utc gmt z about around roughly approximately nearly almost circa ca some
        shortly service product app application host system time value values level total altogether overall together
        very clearly well-known own itself themselves per each second seconds minute minutes hour hours ago today
        for during within between same such like following below above shown see seen reports reported reporting shows show showed found
        measured reads lists listed there's it's stands stood sits sat reached reaching hit hitting peaked peaking max maximum peak highest
        worst high up baseline's times x operation request requests call calls endpoint trace spans
        data figures metric metrics signal window range minutes kubernetes k8s cluster says according get gets receives received
        made make in total out went go goes come came one past window's kind kinds fold share ratio rate rates just
        did does do will users namely i.e e.g percent warns warning name named whose where when more than over least beyond exceeds exceeded under fewer less
        stayed remained kept began begin begins starts started start again further version release's answered
        way like old log logs entry usage use seems-not level's state status full place load""",
    Word.PRESENT: "is are has have now currently still stay stays remains keeps",
    Word.RECOVERED: "recovered recovers recovering recovery",
    Word.SATURATED: "saturated exhausted maxed",
    Word.DEPLOYED: "deployed released shipped deploys deploy deployment release rollout pushed launched deploying installed",
    Word.REVERTED: "reverted rollback undone",
    Word.REPLACED: "replaced replacing replaces superseded superseding supersedes succeeded-by",
    Word.FAILS: "fail fails failing failed failures erroring",
    Word.SAYS: "say saying says logged logs-that wrote writes write written contain contains containing logging such-as example",
    Word.MENTIONS: "mention mentions mentioning naming names",
    Word.SPENDS: "spends spend spent takes take costs lose loses lost",
    Word.UNAVAILABLE: "unavailable unreachable nodata",
    Word.STATE: """running run runs ready crashing crashed crashloopbackoff crashloop pending unscheduled evicted oomkilled killed unready restarting
        completed notready imagepullbackoff errimagepull terminated active backoff healthy warn warnings over""",
    Word.NOUN: """warninglines restarted pod pods replica replicas container containers node nodes deploys-count line lines message messages event events
        incident incidents trace traces span workflow workflows restarts restart resource resources mosttime pages page entries
        deployments replicaset statefulset""",
    Word.NOT: "not n't never neither nor isn't aren't wasn't weren't didn't doesn't don't hasn't haven't hardly cannot can't",
    Word.NONE: "no none zero without",
    Word.ALL: "all both every entire whole always everything everywhere everybody everyone any",
    Word.ONLY: "only solely alone exclusively sole merely nothing nobody elsewhere",
    Word.NEW: "new newly frequent more grew-lines gone additional",
    Word.USUAL: "usual usually normally normal-value typically baseline before previously earlier formerly was-at compared against versus vs",
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
        affected unaffected impact impacted expected actually meanwhile yet too already soon""",
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
    Word.BY: "change", Word.TOOK: "took", Word.ZSCORE: "z",
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
