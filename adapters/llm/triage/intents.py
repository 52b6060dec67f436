"""The intent of a message: one table, read from the top; the first matching row counts.

Each row names the topic, which selects the checks, and the part of its answer.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from adapters.llm.on_call import ASKED as ON_CALL
from adapters.llm.stated import is_alert, is_log_line
from adapters.llm.triage.meaning import KNOWN_WORDS, is_foreign
from adapters.llm.triage.spelling import spelled_out

Topic = Literal[
    "cause", "logs", "deploys", "done", "figure", "pods", "history", "runbook", "order", "on call",
    "greeting", "thanks", "help", "recap", "beyond", "outside", "unclear",
]  # fmt: skip
# Of an investigation: all of it, or the part that answers.
Part = Literal["all", "over", "state", "impact", "next", "coverage", "onset"]


@dataclass(frozen=True, slots=True)
class Intent:
    """`part` belongs to topic "cause"; for "beyond" `subject` describes the request in words."""

    topic: Topic
    part: Part = "all"
    subject: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    intent: Intent
    pattern: re.Pattern[str]
    whole: bool = False  # the pattern is all of the message
    later: bool = False  # only of a thread in which something was asked before


def _row(
    topic: Topic,
    pattern: str,
    *,
    part: Part = "all",
    subject: str = "",
    whole: bool = False,
    later: bool = False,
) -> _Row:
    return _Row(Intent(topic, part, subject), re.compile(pattern), whole, later)


_FILLER: Final = (
    r"(?:(?:hey|hi|ok|okay|so|and|but|then|well|now|also|please|just|kortex|again|actually)[,! ]+)*"
)
_POLITE: Final = (
    r"(?:(?:can|could|would|will) (?:you|we|i) (?:please )?|i (?:want|need|would like) (?:you )?(?:to )?"
    r"|let us |let's |please |go ahead and )*"
)
_END: Final = r"(?: (?:please|now|right now|here|then|again|so far|already|for me|yet))*[ .?!]*"
_THING: Final = (
    r"(?:it|this|that|all|things|everything|we|you|all of it|all this|the (?:whole )?(?:incident|outage|"
    r"problem|issue|trouble|alert|error rate|latency|site|shop|system|service|errors)|prod(?:uction)?)"
)
_FINE: Final = (
    r"(?:over|fixed|resolved|solved|recovered|recovering|mitigated|ok|okay|fine|good|healthy|normal|stable|"
    r"usual|back|up|done|better|working|clear|gone|alright|calm|quiet|green|improving|improved|stopped)"
)
_ILL: Final = (
    r"(?:broken|slow|down|failing|happening|going on|bad|errors?|there|ongoing|open|an issue|a problem|"
    r"degraded|unhealthy|timeouts?|timing out|erroring|wrong|high|on fire|active)"
)
ROLE_WORDS: Final = (
    r"(?:(?:error|failure|success|request|hit|5xx|drop) ?(?:rates?|ratios?|counts?|percent(?:age)?)|availability"
    r"|memory|heap|cpu|latenc(?:y|ies)|p ?(?:50|90|95|99|999)|percentiles?|response times?|duration|throughput"
    r"|(?:5xx|4xx|[45]\d\d)(?:e?s)?|traffic|requests?(?: (?:per|a) (?:second|minute))?|rps|qps|connections?|connection pool|pool|queues?"
    r"|backlog|lag|disk|storage|disk space|restarts?|network|bandwidth|saturation|load|utili[sz]ation|errors?)"
)
_VERB: Final = (
    r"(?:restart|reboot|bounce|redeploy|deploy|scale|drain|cordon|kill|delete|stop|start|disable|enable|"
    r"turn (?:on|off)|fail ?over|release|ship|flush|clear|purge|increase|decrease|raise|resize|evict|"
    r"rollout|promote|apply|run|execute|trigger|roll forward)"
)

# "restart checkout", "scale the pods of cart to 4"; not "restart loop on payments".
_OBJECT: Final = (
    r" (?:the [\w.-]+(?: (?!on\b|in\b|of\b|for\b|to\b|is\b|with\b)[\w.-]+){1,2}"
    r"|(?:the )?(?:(?:pods?|service|instances?|deployment|containers?|hosts?|product) (?:of |in |for )?(?:the )?)?[\w.-]+)"
    r"(?: (?:pods?|service|instances?|deployment|hosts?))?(?: (?:to|by|with|at) v?[\w.-]+(?: (?:replicas|pods|instances|percent))?)?"
)

# What Kubernetes knows of an object: its events, its state, and why it is in it.
_CLUSTER_TALK: Final = (
    r"\b(?:kube\w* )?events\b|\bdescribe\b|\bexit codes?\b|\boom ?\w*|\bout of memory\b|\bimages?\b.*\b(?:tags?|pull\w*|wrong|missing|found|exists?)\b"
    r"|\b(?:wrong|bad|missing) (?:image|tag)\b|\bendpoints?\b(?!.*\b(?:fail\w*|slow\w*|errors?)\b)|\bquotas?\b|\bpending\b|\bunschedul\w*|\b(?:crash|restart) ?loop\w*|\bprobes?\b"
    r"|\b(?:pvcs?|volume claims?|config ?maps?|service accounts?|namespaces?|kubelet|ingress(?:es)?|hpa|pdb)\b|\bservice (?:reachable|selector)\b|\bunhealthy\b|\bnot ready\b|\bevicted\b"
    r"|\breachable\b|\bimage ?pull\w*|\bvolumes?\b|\bstorage ?class\w*|\bsecrets?\b"
)
_TABLE: Final[Sequence[_Row]] = (
    # Courtesies and questions about Kortex.
    _row("done", r"(?:yes|yep|yeah|yup|sure)(?: please)?[ .!]*", whole=True, later=True),
    _row("thanks", r"(?:(?:ok|okay|great|good|cool|nice|perfect|awesome|got it|alright|sweet|super|fine|thanks|thank you|thx|ty|tyvm|cheers|"
         r"merci|danke|will do|noted|understood|makes sense|good (?:job|bot|work)|well done|np|no problem|done|lgtm|lol|yes|no|yep|nope|sure|"
         r"never ?mind|nvm|haha\w*|heh|rofl|lmao|nah|neat|brilliant|legend|man|mate|bro|dude|buddy|guys?|folks|friend|pal|bot|my|one|you|a|much appreciated|appreciate it|fair enough|sounds good|works for me|by me|found (?:it|the (?:problem|cause|issue))|agreed|ack|roger|copy that|(?:i am |we are )?clos(?:e|ing) (?:this|it)|closing|bye|k|kk|you rock|that (?:helps|helped)|(?:i am |we are )?(?:going|off|back) to (?:bed|sleep)|good ?night|"
         r"(?:a lot|so much|very much|kortex|all|everyone|team|again|for (?:that|this|the help|now)))[ ,.!:;()-]*)+", whole=True),
    _row("greeting", r"(?:hi|hello|hey|hiya|yo|sup|ping|test|(?:hey |hello )?(?:are )?you (?:still )?(?:there|up|here|around|awake|alive|working)|(?:is )?any(?:one|body) (?:there|here|home)|good (?:morning|afternoon|evening))(?: (?:kortex|bot|there|all|everyone))?[ .!?]*", whole=True),
    _row("help", r"(?:help(?: me)?|what (?:can|do) you (?:do|see|know|look at)(?: here| for (?:me|us))?|what (?:can|should) (?:i|we) ask(?: you)?|what else can (?:you|i) (?:do|ask)|who are you|what are you|"
         r"are you (?:a )?(?:bot|human|ai)|how (?:do|can|should) (?:i|we) (?:use|ask|talk to) (?:you|kortex|this)|commands?|usage|"
         r"menu|how do you work|what is kortex|how are you)[ ?.!]*", whole=True),
    _row("recap", _FILLER + r"(?:catch (?:me|us) up.*|(?:(?:give|write|get|draft|post|send)(?: me| us)? )?(?:an? |the )?(?:quick |short |brief )?(?:summary|recap|status|update|overview|status update|(?:short|quick) (?:version|story)|one ?liner|bottom line|gist)"
         r"(?: (?:of|on) (?:this|the|it)(?: (?:thread|incident|outage))?)?(?: in (?:one|two|a few|three|\d) \w+)?(?: (?:for|to) (?:the |my |our )?[\w ]+)?|(?:(?:tell|give|explain|say)(?: it)?(?: to)?(?: me| us)?(?: it)? )?(?:in (?:one|two|a few|three|\d|a) (?:\w+ )?(?:lines?|sentences?|words?|nutshell)|short(?:ly)?|briefly)|long story short|which (?:service|product|component|deployment|database|db|one)|summari[sz]e\b.*|(?:(?:give|write|get|send) (?:me|us) )?(?:a |the )?(?:quick |short )?summary for\b.*|(?:(?:can|could) (?:someone|somebody|anyone|you) )?sum (?:it |this )?up\b.*|what (?:is|was) (?:it|this)(?: (?:about|all about))?|where (?:are|do) we(?: stand)?(?: at)?|"
         r"what is (?:the )?(?:status|state|situation|latest|new|going on here|story|up)|i am (?:here|back|online|awake|up)\b.*|any (?:updates?|news)|what happened|anything (?:new|else)|"
         r"what did i miss|bring me up to speed|(?:(?:hi|hello|hey)(?: all)?[, ]+)?(?:i |i am )?(?:just |now )?(?:joined|joining|got here|woke up)\b.*|brief me)" + _END, whole=True, later=True),
    _row("beyond", r"\b(?:post ?mortem|incident report|rca|write ?up|retro(?:spective)?)\b", subject="write a report"),
    # What people did, and who they are.
    _row("cause", r"\bwhat did (?:the |that )?(?:roll back|rolling back|restart|fix|revert) do\b|\b(?:did|has|have) (?:it|that|this|the (?:roll(?:ing)? back|revert|restart|fix)\b[^.?!]*|rolling back) (?:actually |really |even )*(?:help\w*|work\w*|fix\w*|solve\w*|(?:do|done|change|changed) (?:any|some)thing)", part="over"),
    _row("done", r"\bwho (?:has |have |had )?(?:already )?(?:confirmed|approved|rejected|declined|rolled|reverted|decided|pressed|clicked|pushed the|hit the|restarted|fixed|did (?:it|that|this))\b"
         r"|\bwhat (?:actions? |else )?(?:has|have|was|were|did|is|are)\b[^.?!]*\b(?:done|tried|confirmed|approved|rejected|carried out|decided|attempted)\b"
         r"|\b(?:was|were|has|have|is)\b[^?!]*\b(?:rolled back|reverted|approved|confirmed|rejected)\b|\b(?:did|has|was|is)\b[^.?!]*\b(?:roll(?:ing)? back|restart|action|revert)\b[^.?!]*\b(?:done|run|ran|carried out|happen|succeed|go through|finish\w*|complete\w*|confirmed)\b"
         r"|\b(?:did|has|have|was) (?:anyone|anybody|someone|somebody)\b[^.?!]*\b(?:confirm|approve|reject|roll|do|try|tried|done|press)\w*"
         r"|\bwhat did (?:we|they|people) (?:do|try)\b(?!.*\b(?:last time|before|back then|previously)\b)|\bactions? taken\b|\b(?:open|pending) (?:cards?|proposals?|approvals?|actions?)\b|\banything pending\b|\bwhat (?:is|was) proposed\b|\bany(?:thing)? proposals?\b"),
    _row("done", _FILLER + _POLITE + r"(?:do|confirm(?:ed)?|approved?|reject(?:ed)?|decline|accept|cancel)(?: (?:it|this|that|the (?:card|proposal|roll back|action)))?" + _END, whole=True, later=True),
    _row("on call", ON_CALL),
    _row("beyond", _FILLER + _POLITE + r"(?:page|call|wake|notify|escalate|email|mail|message|tell|dm|invite|assign|ping (?!\W*$))\b(?! me\b).*",
         subject="page or message people", whole=True),
    _row("beyond", _FILLER + _POLITE + r"(?:open|create|file|log|raise|make) (?:an? |the )?(?:\w+ )?(?:ticket|jira|issue|bug)\b.*", subject="open tickets", whole=True),
    _row("beyond", r"\b(?:who|anyone|anybody|someone|somebody)\b[^.?!]*\b(?:looking (?:at|into)|working on|handling|on (?:this|it)|involved)\b(?! call)", subject="see who works on this"),
    _row("beyond", r"\bhow long (?:will|would|until|till|does)\b|\beta\b|\bwhen (?:will|can|does) (?:it|this|that|we|the \w+) (?:be |get )?(?:fixed|over|back|resolved|done|recover\w*|end|stop)\b", subject="predict how long something takes"),
    _row("beyond", r"\bwho (?:owns|is responsible|maintains|is the owner|wrote|built)\b|\bwhich team\b", subject="say who owns a service"),
    _row("done", r"^" + _FILLER + r"(?:(?:no|nope|nah|stop|wait)[,! ]+)*(?:do not|no|never) (?:roll(?:ing)? back|restart|do (?:it|that|this)|revert)" + _END, whole=True, later=True),
    _row("beyond", r"^" + _FILLER + _POLITE + r"(?:lmk|let (?:me|us) know|remind|(?:tell|ping|wake) me (?:when|if|once)|watch|keep an eye)\b.*", subject="watch or remind you later", whole=True),
    _row("beyond", r"\b(?:any|which|what|open|active) alerts?\b|\balerts? (?:is |are )?(?:still )?(?:firing|open|active)\b", subject="see which alerts fire", later=True),
    _row("beyond", r"\b(?:one|single|which|same|what|per|by) (?:hosts?|machines?|zones?|regions?|az|tenants?)\b", subject="break figures down by host or region", later=True),
    # Orders: a card, never an action.
    _row("order", _FILLER + _POLITE + r"propose (?!it\b|that\b|this\b)[\w-]+.*", whole=True),
    _row("order", _FILLER + _POLITE + r"fail ?over" + _END, whole=True),
    _row("order", _FILLER + _POLITE + r"(?!restart loops?\b)" + _VERB + _OBJECT + _END, whole=True),
    _row("order", r"\bpropose (?:it|that|this)? ?(?:again|once more|anew)\b|\b(?:re-?|another |new )(?:proposal|propose|card)\b", later=True),
    # A question for a cause, with any other content.
    _row("cause", r"\bwhy\b(?! (?:do|should) (?:you|i)| not\b| (?:are you|so) (?:so )?(?:sure|certain|confident))|\bwhat (?:is|was|are|were) (?:wrong|broken|failing|going on|up with|happening)|\bwhat (?:is|was|are) (?:the )?(?:root )?(?:cause|reason|problem|culprit)|\broot cause\b|"
         r"\bwhat (?:causes|caused|happened|broke(?! first)|breaks|is causing|went wrong)|\binvestigate\b|\bdiagnose\b|\btriage\b|\bwhich (?:service|one|product|component) (?:is|was) (?:it|to blame|the (?:cause|culprit|problem))"
         r"|\b(?:find|look) (?:out )?(?:the cause|into)\b|\bwho is the culprit\b|\b(?:any|no)thing (?:is )?(?:wrong|unusual|odd|off|broken)\b|\bis something wrong\b"),
    _row("cause", r"^(?!is |are |was |what |how |show |any |does )[^?]*\b(?:is|are|went|has|have|keeps?|looks?|seems?|shot|getting) (?:\w+ )?(?:high|spik\w+|rising|elevated|climb\w+|through the roof|increas\w+|jump\w+|dropp\w+|up|too \w+)\b[^?]*", whole=True),
    _row("cause", r"^" + _FILLER + r"(?:it|this|we|users?|customers?|people|orders?|requests?|i|now|again|getting|seeing|new)\b[^?]*\b(?:slow|fail\w*|errors?|down|5\d\d|timing out|time ?outs?|broken|crash\w*)\b.*", later=True),
    # Parts of an investigation.
    _row("cause", r"^" + _FILLER + r"(?:(?:its|it is|" + _THING + r")(?: is| are)? )?(?:(?:looks?|looking|seems?|feels?) (?:like )?(?:it is )?)?(?:all |much |a bit |way )?(?:worse|" + _FINE + r"|back to normal)" + _END, part="over", whole=True, later=True),
    _row("beyond", r"\bhappen again\b|\bcome back\b", subject="predict whether it comes back", later=True),
    _row("cause", r"\b(?:which|what) (?:service|product|app|component|one)s? (?:has|have|is|are) (?:the )?(?:highest|most|worst|slowest|biggest)\b|\b(?:slowest|worst|sickest|unhealthiest|most (?:broken|affected|errors?)) (?:service|product|app|component|one)s?\b|\bwho is (?:the )?(?:slowest|worst)\b", part="impact", later=True),
    _row("cause", r"\b(?:would|will|could|might|does) (?:a |the |it )?(?:restart\w*|roll(?:ing)? back|revert\w*|scal\w+|reboot\w*)\b[^?]*\b(?:help|fix|work|solve)\w*|\b(?:do|should|shall) (?:i|we) (?:really |just |now )?(?:roll|restart|revert)\b|\b(?:roll(?:ing)? back|restart|revert|fix) or (?:just |do )?(?:not|wait|leave|keep|watch)\b|\b(?:act|wait) or\b|\bworth (?:a |the )?(?:roll|restart|revert)\w*", part="next", later=True),
    _row("deploys", r"\b(?:somebody|someone|anyone|anybody|who|they) (?:has |have )?(?:chang\w*|touch\w*)\b", later=True),
    _row("cause", r"^" + _FILLER + r"(?:is|are|was) " + _THING + r" (?:all |really |finally |now |already )*(?:over|fixed|resolved|solved|mitigated|recovered)" + _END, part="over", whole=True),
    _row("pods", r"^" + _FILLER + r"(?:is|are) (?:all |any |the |our )*(?:pods?|nodes?|containers?|replicas?)\b|\bpod restarts\b", later=True),
    _row("cause", r"\b(?:is|are) (?:it|this|that|they|things) still\b|^" + _FILLER + r"(?:all|everything|things|(?:all|every) \w+) " + _FINE + r"\W*$|^" + _FILLER + r"(?:better|worse|slower|higher|lower) than\b|^" + _FILLER + r"(?:can (?:i|we) )?(?:close|resolve|end) (?:it|this|the incident) ?\?|\bstill\b.*\b" + _ILL + r"\b|\bany(?:thing)? (?:is )?still\b|\b(?:is|are) (?:it|things|we|they|the \w+) (?:getting )?(?:any )?(?:better|worse)\b|\bback to (?:normal|usual|baseline)\b"
         r"|\bcan (?:i|we) (?:close|resolve|stand down|go (?:back )?(?:to (?:bed|sleep)|home))\b|\ball (?:good|clear|ok|fine|green)\b|\b(?:has|have|did) (?:it|this|that|things|the \w+) (?:\w+ )?(?:recover|stop|improve|end|go away|resolve|clear|been fixed|been resolved|calm)\w*"
         r"|\bhow (?:is|are) (?:it|things|we|that|this)(?: (?:now|lookin[g']?|going|goin|doing|today))*[ ?.!]*$|\bany (?:better|improvement)\b|^" + _FILLER + r"(?:better or worse|worse or better)\b|^(?:so |and )?(?:better|worse)(?: now| yet)?\W*$|\bit is getting (?:worse|better)\b|\bfixed yet\b|\bstill (?:broken|slow|down)\b|\bfalse (?:alarm|positive)\b|\bfor real\b|\bis (?:it|this|that) (?:a )?(?:real|actual|serious)\b|\bcan (?:i|we) (?:relax|sleep|leave|log off)\b|\bquiet(?:er)?\b", part="over", later=True),
    _row("cause", r"^" + _FILLER + r"(?:is|are|was|were) " + _THING + r" (?:all |really |finally |now |already )*(?:\w+ )?(?:all |really |finally |now |already |back to |back )*" + _FINE + r"\b.*", part="over", later=True),
    _row("cause", r"\b(?:what|which|who)\b[^?]*\b(?:first|earliest)\b|\bhow long (?:did|was|were|has|have|had|is|are)\b.*|\b(?:since|for) how long\b|\bwhen (?:exactly |precisely )?did (?:it|this|that|the \w+) (?:start|begin|end|stop)\w*|\b(?:before or after|after or before) (?:the |that |this )?(?:\w+ )?(?:deploy|release|roll|change|version)\w*|^" + _FILLER + r"(?:since|from) when\b.*", part="onset", later=True),
    _row("cause", r"\bimpact(?:ed)?\b(?! of)|\baffected (?:services?|products?|systems?)\b|\bblast radius\b|\bhow bad\b|\bhow many (?:customers|users|people|clients|orders|buyers)\b|\bwho (?:is|else is|are) (?:affected|hit|impacted|suffering)"
         r"|\b(?:which|what) (?:\w+ )?(?:services?|products?|customers|users|apps?|else|others?|systems) (?:is|are|were|was) (?:also )?(?:affected|impacted|failing|slow|broken|hit|down)\b|\b(?:tell|inform|notify|update) (?:the |our )?(?:customers?|users?|clients?)\b|\bstatus page\b|\bseverity\b|\bsev ?\d\b|\b(?:what|anything) else (?:is )?(?:affected|broken|slow|failing|wrong|down|hit)\b|\bhow (?:serious|severe)\b"
         r"|\b(?:customers?|users?|people|clients|buyers|orders|carts|payments|requests)\b[^.?!]*\b(?:affected|impacted|notic\w+|complain\w*|lost|suffer\w*|stuck)\b|\b(?:los(?:e|es|ing)|dropping|hitting|hurting|affecting) (?:\w+ )?(?:customers?|users?|orders|money|revenue|carts|payments|requests)\b|\b(?:are|is) (?:customers|users|people|anyone|anybody|anything|others?|other (?:services|products)) (?:else )?(?:also )?(?:affected|impacted|hit|seeing)\b", part="impact"),
    _row("runbook", r"\b(?:runbooks?|playbooks?|documentation|docs|procedure|wiki|sop)\b|\bhow do we usually\b"),
    _row("cause", r"\bwhat happens (?:if|when)\b|\bwhy not (?:just |simply )?" + _VERB + r"\b|\bwhy not\W*$|\bwho (?:can|may|must|should|has to) (?:approve|confirm|decide|press)|\bis (?:it|this|that|the \w+(?: \w+)?|rolling back) (?:safe|reversible|risky|dangerous)\b|\bwhat (?:does|will|would) (?:the |that |this )?(?:card|button|roll back|confirm|it) do\b|\bcan (?:i|we) undo\b|\bsafe to\b|\bwhat is safe\b", part="next"),
    _row("cause", r"\bwhat (?:should|can|do|could|must|shall|would) (?:i|we|you|they)(?: need to| have to)? (?:do|try|recommend|suggest|propose|advise)\b|\bwhat now\b|\bwhat (?:is|are|next)(?: the)? (?:next|options)\b|\bnext steps?\b|\bwhat next\b|\bhow (?:do|can|to|should|could|would)(?: i| we| you)? ?(?:fix|mitigate|solve|resolve|stop|repair|remediate)\b"
         r"|\byou (?:recommend|suggest|advise|propose)\b|\b(?:any|your) (?:recommendations?|suggestions?|ideas?|advice|fix)\b|\brecommended\b|\b(?:should|shall|can|could) (?:i|we) (?:just |also |maybe )?(?!see|get|have|look|know|ask|do\b|trust|tell|rely)\w+\b|^" + _FILLER + _POLITE + r"(?:fix|repair|solve|mitigate) (?:it|this|that)\b|\bis there (?:a )?(?:fix|workaround)\b|\bhow to (?:fix|mitigate)\b", part="next"),
    _row("cause", r"\b(?:are )?you (?:so |really )?(?:sure|certain|confident)\b|\bhow (?:sure|certain|confident|reliable)\b|\bwhat (?:did|have|else did|all did|do)(?: not)? you (?:all |not |actually |even )?(?:look|check|see|seen|read|miss|know|do)\w*|\b(?:is|are) (?:this|that|it|these) (?:just |only )?(?:a )?(?:guess\w*|fact|proven)\b|\bwhat (?:makes|made) you\b|\bdid you (?:look|check|consider|see)\b|\bwhere did you look\b|\b(?:what|show me|show) (?:is )?(?:the |your )?(?:evidence|proof)\b"
         r"|\bbased on what\b|\bhow do you know\b|\bwhy do you (?:think|say|believe)\b|\bprove it\b|\b(?:really|seriously)\b\?*$|\bwhat (?:is|are) (?:missing|not checked)\b|\bconfidence\b|^" + _FILLER + r"(?:sure|certain)(?: about (?:this|that|it))?\W*$|\btrust\b|\brely on\b|\bcould (?:it|you) be (?:wrong|something else)\b", part="coverage", later=True),
    # Lines, deploys, figures: listed, not weighed.
    _row("beyond", r"\b(?:code|diff|commits?|pull requests?|pr|source) ?(?:change|changes)?\b.*\bv?\d|\b(?:show|what is|see|get) (?:me )?(?:the )?(?:code|diff|commits?|pull requests?)\b", subject="show the code of a change"),
    _row("beyond", r"<?https?://\S+", subject="open links", whole=True),
    _row("beyond", r"(?:[a-z]+ ){0,3}<?https?://\S+(?: [a-z]+){0,4}[ ?.!>]*", subject="open links", whole=True, later=True),
    _row("beyond", r"\b(?:silence|mute|snooze|suppress)\b|\back(?:nowledge)? (?:it|this|that|the)\b", subject="silence alerts"),
    _row("beyond", r"\berror budgets?\b|\bsl[oa]s?\b", subject="read error budgets or SLOs"),
    _row("beyond", r"(?<!stack )\btraces?\b(?! ?backs?)|\bspans?\b", subject="show single traces"),
    _row("beyond", r"\b(?:what|who|which \w+) (?:is|are|was|were) (?:still )?(?:holding|blocking|locking|using up|hogging)\b|\b(?:long|slow|running|which|blocking) quer(?:y|ies)\b", subject="see single queries or who holds a connection"),
    _row("deploys", r"\bwhat (?:did|does|is|was)\b[^.?!]*\b(?:v\d+\.\d+|\d+\.\d+\.\d+)|\bwho (?:deploy|releas|ship|push|roll\w* out)\w*|\bwhat did \w+ (?:chang|deploy|releas|ship|push|merg)\w*|\b(?:what|something|anything|everything|nothing|stuff|things?) (?:that |which )?(?:got |has |have |was |were |been |is )*(?:recently |just |else )*(?:chang|deploy|releas|ship|roll\w* out)\w*|\b(?:did|has|have|was) (?:anything|something|any\w*|we|someone)\b[^.?!]*\b(?:chang|deploy|releas|ship)\w*"
         r"|\b(?:any|last|latest|recent|newest|list|show|which|all|previous|see)\b[^.?!]*\b(?:deploy(?:s|ments?)?|releases?|rollouts?|changes|versions?)\b|^deploy(?:s|ments)?\b|\bwhen (?:was|were|did) [^?!]*\b(?:(?:deploy|releas|ship)\w*|(?:go|went) (?:out|live)|rolled out)|\b(?:was|is|were|are) there (?:a |an |any |some )?(?:\w+ )?(?:deploy|release|rollout|change)\w*|\bversions?\b|\bdeploys?\b[^.?!]*\b(?:last|recent|today|yesterday|week|of|to)\b|^changes\b|\bno (?:deploys?|releases?|rollouts?)\b|\bwhat is (?:deployed|running)\b|\bcommits?\b"),
    _row("cause", r"\b(?:did|does|do|has|have|is|are) (?:any|some|every)thing\b[^.?!]*\b(?:worse|slower|degrad\w*|regress\w*|break|broke\w*)\b"),
    _row("logs", r"\blogs?\b(?! ?(?:in\b|into\b))|\blog ?lines?\b|\bstack ?traces?\b|\btrace ?backs?\b|^" + _FILLER + _POLITE + r"(?:show|give|see|list|print|get|fetch|tail|grep|find|search|paste|display)\b.*\b(?:errors?|warnings?|exceptions?|lines?|messages?)\b(?! ?(?:rate|ratio|count|percent))"
         r"|\b(?:latest|last|recent|newest) (?:\d+ )?(?:new |other )?(?:errors?|exceptions?|warnings?|error messages?)\b(?! ?(?:rate|ratio|count|percent))|\b(?:tail|grep)\b|\btop (?:\d+ )?(?:errors?|exceptions?)\b|\bmost (?:common|frequent) (?:errors?|exceptions?)\b|\bwhat (?:error|errors|exception)s? (?:are|do|is|am) (?:we|i|they|users|it)\b"),
    _row("logs", r"\b(?:what|which|any|the) (?:are the |new |other )?(?:errors?|exceptions?|warnings?|error messages?)\b(?! ?(?:rate|ratio|count|percent))(?!.*\bstill\b)|^(?:errors?|exceptions?|warnings?) (?:of|in|from|for|on|with|about|containing|mentioning|like)\b", later=True),
    _row("pods", _CLUSTER_TALK, later=True),
    _row("pods", r"\b(?:any|how many) (?:\w+ )?(?:restarts?|crash\w*|oom ?kill\w*)\b"),
    _row("figure", r"\bhow (?:slow|fast|busy|loaded)\b|(?<![\w-])(?:graph|chart|dashboard|plot)s?(?![\w-])|\bcompare\b.*|\b(?:was|is|were) (?:it|this|that|[\w-]+) (?:like this|the same|normal|usual|(?:as |this |so |that )?(?:slow|bad|high|busy)) ?(?:as |too |also )?(?:yesterday|last (?:week|night)|before|a (?:day|week) ago|(?:this|at the same) time)\b"),
    _row("figure", r"\b(?:how (?:much|many|high|low|big|large|bad|full|long)|what (?:is|are|was|were)|show(?: me)?|give me|get|check|current|now|average|mean|max(?:imum)?|peak|tell me|see)\b.*\b" + ROLE_WORDS + r"\b"
         r"|\b" + ROLE_WORDS + r"(?: (?:and|or|&|,) (?:the )?" + ROLE_WORDS + r")* ?(?:usage|use|consumption|level|count)? (?:of|for|in|on|at|now|today|yesterday|right now|currently|last|over|since|between|after|before|during)\b"
         r"|\b(?:is|are) (?:the )?" + ROLE_WORDS + r"(?: (?:usage|of|on|in|for) ?[\w-]*)* (?:high|low|ok|okay|fine|normal|full|up|rising|growing|elevated|bad|maxed(?: out)?|saturated)\b"
         r"|^" + _FILLER + r"[\w-]* ?" + ROLE_WORDS + r"(?: (?:usage|use|used|left|free|open|consumption|level|drop|spike|dip|jump|trend))?(?: (?:now|right now|today|currently|yesterday|please|of [\w-]+))*[ ?.!]*$"
         r"|\bhow many \w+ (?:have |has |are |were |did )?(?:fail\w*|errored)\b|\b" + ROLE_WORDS + r" per (?:pod|replica|instance|host|container)\b"),
    _row("figure", r"^" + _FILLER + r"(?:(?:the )?[\w.-]+ )?" + ROLE_WORDS + r" (?!spik|alert|high|is\b|are\b|went|jump|drop)(?:(?:of |for |in |on )?[\w.-]+ )?(?:in |over |for |since |during )?(?:the )?(?:last|past|since|today|yesterday|now)\b[^?!]*[?!. ]*$"),
    _row("figure", r"^" + _FILLER + ROLE_WORDS + r" (?:full|ok|okay|high|low|fine|bad)[ ?.!]*$", later=True),
    _row("pods", r"\b(?:how many|which|list|show(?: me)?|count|all) (?:the |of the )?(?:\w+ )?(?:pods?|replicas?|containers?|instances?)\b"),
    _row("pods", r"\b(?:does|do|did|is|are|has|have|keeps?) (?:the )?(?!not\b)[\w.-]+ (?:keep )?(?:restart|crash)\w*", later=True),
    _row("pods", r"\b(?:pods?|replicas?|containers?|instances?|nodes?|kubernetes|k8s|deployments?)\b", later=True),
    _row("history", r"\b(?:happened|happen|seen|had|have|occurred|did we have|same) (?:this |that |it |it happen |something )?(?:like this )?(?:before|ever|last (?:week|month|year)|previously|already|earlier|in the past)\b|\bever (?:happened|seen|had|been)\b|\blast time\b|\b(?:similar|past|previous|earlier|old|other) (?:incidents?|outages?|problems?|issues?)\b|\bfirst time\b|\bwhen did (?:this|it|that) last\b|\blast (?:happen|occur)\w*|\brecurring\b|\bhistory\b"),
)  # fmt: skip
# Any other message of a thread, by the words in it: only where no row above matches.
_BY_WORDS: Final[Sequence[_Row]] = (
    _row("beyond", r"^" + _FILLER + _POLITE + r"(?:write|explain|draft|compose|translate|teach|define|describe)\b", later=True),
    _row("done", r"\b(?:cards?|proposals?|button|approv\w*|reject\w*|declin\w*|confirm\w*)\b|\bsaid (?:no|yes)\b", later=True),
    _row("history", r"\b(?:same|like) (?:thing|issue|problem|incident|error|outage|one)s?\b[^.?!]*\blast\b", later=True),
    _row("cause", r"\bbottle ?necks?\b|\bculprit\b|\broot cause\b|\bto blame\b|\bfault\b", later=True),
    _row("cause", r"\bif (?:it|this|that) (?:does not|did not|do not|fails)\b|\b(?:is )?left to (?:try|do)\b|\bwhat is (?:left|the (?:fix|plan))\b|\boptions\b|\b(?:anything|what else) (?:i|we) (?:should|can|could)\b|\bworkarounds?\b|\b(?:how|can|could|should)\b[^.?!]*\b(?:fix|mitigate|repair|prevent)\b", part="next", later=True),
    _row("cause", r"\bwhen (?:exactly )?(?:did|has|was)\b|\bhow (?:long|many (?:minutes|hours|min))\b|\bwhat time\b|\bsince when\b", part="onset", later=True),
    _row("cause", r"\b(?:which|what|any|many|do|are|our|real) (?:\w+ )?(?:customers?|users?|clients?|buyers|people|teams?|regions?|tenants?)\b|\bworst\b|\bwhat (?:is )?(?:else )?(?:broken|affected|hit)\b", part="impact", later=True),
    _row("deploys", r"\bv\d+(?:\.\d+)+\b|\b(?:shipp?ed|pushed|merged|deploy\w*|releas\w*|rolled out|version)\b", later=True),
    _row("figure", r"\b[a-z]+(?:_[a-z0-9]+)+\b", later=True),
    _row("figure", r"(?<![\w-])" + ROLE_WORDS + r"(?![\w-])", later=True),
)  # fmt: skip
# About a product, in a thread about another one: its state, not a new investigation.
_ABOUT_PRODUCT: Final = re.compile(
    r"^"
    + _FILLER
    + r"(?:(?:what|how) about|and|how (?:is|are)|what is with|is|are|was|does|did|check|look at|"
    r"status of|state of|same for|also|or)\b.*"
)
_ONLY_NAME: Final = re.compile(
    _FILLER + r"(?:the )?[\w.-]+(?: (?:too|also|then|now|service))*[ ?.!]*"
)
_IF_FINE: Final = re.compile(rf"^{_FILLER}(?:is|are|was)\b.*\b{_FINE}\b")
_CLAUSES: Final = re.compile(r"[?!;]+\s*|\.\s+|,?\s+(?:and|also|plus)\s+|,\s+")
_FEWEST_WORDS: Final = 2
_MOST_WORDS: Final = 4  # beside a name, of a message that asks how that is
_BESIDE_CAUSE: Final = frozenset({"deploys", "done", "on call"})
STATE: Final = Intent("cause", "state")


def intents(text: str, names: Collection[str], *, later: bool) -> Sequence[Intent]:
    """At most two intents, in the order of the message; empty if no row matches.

    `later`: the thread already asked something.
    """
    if later and (is_log_line(text) or is_alert(text)):
        return (Intent("logs") if is_log_line(text) else STATE,)
    plain = spelled_out(text, names)
    whole = _intent(plain, _TABLE, later=later)
    is_cause = whole == Intent("cause")
    if whole is not None and whole.topic in {"order", "thanks"}:
        return (whole,)
    parts = [part for part in _CLAUSES.split(plain) if len(part.split()) >= _FEWEST_WORDS]
    rows = _TABLE if whole or is_foreign(plain, names) else (*_TABLE, *_BY_WORDS)
    found = [one for part in parts if (one := _intent(part, rows, later=later))]
    several = list(dict.fromkeys(found))
    several = several if parts[1:] else []
    if is_cause:  # of the rest of a complaint, only what is listed by itself
        beside = [one for one in several if later and one.topic in _BESIDE_CAUSE]
        return (Intent("cause"), *beside[:1])
    if len(several) > 1:  # "ok cool, anything still open?" is more than thanks
        several = [one for one in several if one.topic not in {"thanks", "greeting"}]
    if any(one.part == "coverage" for one in several):
        several = [one for one in several if one.part == "coverage"]  # no new report beside that
    if len(several) > 1:
        return several[:2]
    whole = whole or _intent(plain, rows, later=later)
    return (whole,) if whole is not None else several


def is_about_product(text: str, names: Collection[str]) -> bool:
    """Whether a message that names a product asks no more than how that is."""
    plain = spelled_out(text, names)
    return bool(_ABOUT_PRODUCT.match(plain) or _ONLY_NAME.fullmatch(plain)) or _is_short(
        plain, names
    )


def _is_short(plain: str, names: Collection[str]) -> bool:
    """A name and a few words that any question about a system is made of: `checkout healthy?`."""
    known = {name.lower() for name in names}
    words = [word for word in re.findall(r"[\w.-]+", plain) if word not in known]
    return len(words) <= _MOST_WORDS and all(word in KNOWN_WORDS for word in words)


def asks_if_fine(text: str) -> bool:
    """Whether a message asks if something is as it should be."""
    return _IF_FINE.search(text.lower()) is not None


def _intent(plain: str, rows: Sequence[_Row], *, later: bool) -> Intent | None:
    for row in rows:
        if row.later and not later:
            continue
        found = row.pattern.fullmatch(plain) if row.whole else row.pattern.search(plain)
        if found:
            return row.intent
    return None
