"""Which way a sentence says that things went, and what kind of sentence it is."""

import re

_UP = (
    r"rose|risen|rises|rising|increas(?:e|es|ed|ing)|climb(?:s|ed|ing)?|grew|grown|grows|jump(?:s|ed)|spik(?:e|es|ed|ing)|"
    r"surg(?:e|es|ed)|elevated|higher|worse(?:ned|ns)?|doubled|tripled|slower|shot up|went up|gone up|"
    r"(?:is|are|was|were) up(?! to date| and running)|up (?:from|by|since)|"
    r"above (?:its|the|their) (?:\d+ ?h )?(?:baseline|usual|normal)|above (?:normal|usual|baseline)|more [a-z]+ than (?:usual|normal)"
)
_DOWN = (
    r"fell|fallen|falls|falling|drop(?:s|ped|ping)?|decreas(?:e|es|ed|ing)|declin(?:e|es|ed|ing)|lower|shrank|dipp?(?:s|ed)|"
    r"halved|faster|improved|down (?:from|by|to|since)|went down|gone down|"
    r"below (?:its|the|their) (?:\d+ ?h )?(?:baseline|usual|normal)|below (?:normal|usual|baseline)|"
    r"(?:fewer|less) [a-z]+ than (?:usual|normal)"
)
_FLAT = (
    r"within (?:its|the|their)?\s?(?:\d+ ?h )?(?:baseline|normal|usual)|within baseline|"
    r"(?<!back to )(?<!than )(?<!below )(?<!above )(?<!the )normal|stable|steady|unchanged|"
    r"(?:is|are|stayed|remained|was|were|stays) flat|as usual|no change|no anomal(?:y|ies)|nothing (?:abnormal|unusual|anomalous)|healthy|unaffected|did not (?:move|change)|"
    r"(?:is|are|was|were|looks?) fine"
)
_ODD = r"abnormal|anomalous|saturated|slow|degraded|unhealthy|left (?:its|the) baseline|out of (?:its|the) baseline"
_DIRECTION = re.compile(
    rf"(?<![\w-])(?:(?P<up>{_UP})|(?P<down>{_DOWN})|(?P<flat>{_FLAT})|(?P<odd>{_ODD}))(?![\w-])",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bno|\bneither|\bnor|\bwithout|\bhardly)(?: [\w-]+){0,2}\s*$",
    re.IGNORECASE,
)
_OTHER_DROP = re.compile(
    r"(?:connections?|packets?|requests|messages?|tables?|frames?) (?:was |were |are )?dropp|dropp?\w* (?:connections?|packets?|requests|messages?|tables?)|slow (?:requests?|quer|calls?|start)"
    r"|(?:lower|higher|faster|slower) (?:priority|level|bound|path)",
    re.IGNORECASE,
)
_FROM_TO = re.compile(
    r"\bfrom (\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3}) to (\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3})(?!\w)"
)
_TO_USUALLY = re.compile(
    r"\bto (\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3})[,;]? ?\(?(?:usually|normally|from|baseline|against|compared (?:to|with)|vs\.?) (?:a baseline of |an? usual )?"
    r"(\d{1,9}(?:\.\d{1,9})?) ?([a-zA-Zµ%]{0,3})(?!\w)"
)
CAUSAL = re.compile(
    r"\b(?:because|caus(?:e|es|ed|ing)|due to|root cause|led to|leads to|trigger(?:s|ed)|as a result of|result(?:s|ed) (?:of|from|in)|"
    r"responsible for|culprit|to blame|blamed?|thanks to|comes from|stems from|brought down|broke)\b",
    re.IGNORECASE,
)
STATE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|went|keeps?|stays?) (?:been |currently |now |all |mostly |clearly )?(?:down|up|failing|failed|crashing|slow|slower|saturated|healthy|"
    r"fine|normal|degraded|broken|overloaded|stuck|out of memory|unavailable|back|full|rolled back|deployed|recovered|stable)\b"
    r"|\b(?:crashed|restarted|timed out|times out|OOMKilled|CrashLoopBackOff|out of memory|recovered|exhausted|ran out of|out of disk)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?\s*$|\b(?:if|whether|could|may|might|would|can|cannot|can['’]t|couldn['’]t|unknown|unclear|not established|not known|"
    r"perhaps|possibly|tell me|ask me|ask for|please|did not look|have not looked|you said|you say|you mention|you wrote|"
    r"usually means|is the (?:latency|time|share|number) that|often|typically|in general|generally|let me|i will|i['’]ll|want me|do you|shall i|no results?)\b",
    re.IGNORECASE,
)
_SUGGESTED = re.compile(
    r"^\W*(?:next\b|consider|try|check|look|run|roll(?:ing)? back|scale|raise|set|use|ask|watch|confirm|verify|restart|increase|reduce|lower|"
    r"i (?:suggest|recommend|propose|would)|you (?:could|can|should|may)|to (?:fix|confirm|verify|mitigate|stop|see)|recommend|suggest|open|see)\b"
    r"|\b(?:should|recommend|i suggest|i propose|is proposed)\b",
    re.IGNORECASE,
)
_ADMITS = re.compile(
    r"\b(?:fail(?:s|ed|ure)?|could not|couldn['’]t|cannot|can['’]t|unable|no (?:data|figures|answer|result|response|metrics|logs|traces)|"
    r"unavailable|timed out|time[- ]?out|denied|refused|error(?:ed)?|did not answer|not reachable|unreachable|without data|not available|"
    r"missing|unknown|not established|does not exist|rejected|nothing came)\b",
    re.IGNORECASE,
)


def directions(text: str) -> list[tuple[str, bool]]:
    """The directions a sentence claims (up, down, flat, odd), each with whether it is denied."""
    text = _OTHER_DROP.sub(" ", text)
    found: dict[tuple[str, bool], None] = {}
    for match in _DIRECTION.finditer(text):
        before = text[max(0, match.start() - 30) : match.start()]
        denied = _NOT.search(before) is not None and match.lastgroup is not None
        found[(match.lastgroup or "", denied)] = None
    return list(found)


def agrees(claimed: str, denied: bool, went: str) -> bool:
    """Whether a series that went so bears out the claim."""
    same = went != "flat" if claimed == "odd" else claimed == went
    return same != denied


def own_figures_disagree(text: str, claimed: list[tuple[str, bool]]) -> bool:
    """A rise to less, or a fall to more, by the figures of the sentence itself."""
    ways = {way for way, denied in claimed if not denied and way in ("up", "down")}
    if len(ways) != 1:
        return False
    spans = [(m[1], m[2], m[3], m[4]) for m in _FROM_TO.finditer(text)]
    spans += [(m[3], m[4], m[1], m[2]) for m in _TO_USUALLY.finditer(text)]
    for first, first_unit, last, last_unit in spans:
        if first_unit and last_unit and first_unit != last_unit:
            continue
        rose = float(last) > float(first)
        if float(last) != float(first) and rose != (ways == {"up"}):
            return True
    return False


def is_open(text: str) -> bool:
    """A question, a possibility, or a word about what is not known: nothing is claimed."""
    return _OPEN.search(text) is not None


def is_suggestion(text: str) -> bool:
    """What people could do, not what is."""
    return _SUGGESTED.search(text) is not None


def admits_failure(text: str) -> bool:
    """It says that something could not be had."""
    return _ADMITS.search(text) is not None
