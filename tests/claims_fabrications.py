"""Fabrications over made-up incidents, by kind: each says what its results do not say."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.claims_worlds import World, crash, recovered, release

SEEDS: Final = range(9)


@dataclass(frozen=True)
class Fabrication:
    """One made-up sentence and its world."""

    kind: str
    world: World
    text: str


_RELEASE: Final = """
number in words|p99 of {sick} rose to nine seconds [E2].
number in words|The latency of {sick} fell by half [E2].
number in words|Two hundred and six error lines of {sick} were logged [E3].
number in words|Half of the requests of {sick} fail [E2].
number in words|One in two requests of {sick} fails [E2].
number in words|Seven pods of {sick} are running [E4].
number in words|Errors of {sick} rose a thousandfold to ninety percent [E2].
other notation|p99 of {sick} rose to 9.7e3 ms [E2].
other notation|p99 of {sick} is 0:09 minutes [E2].
other notation|3/4 of the requests of {sick} fail [E2].
order|{sick} slowed down first and was deployed afterwards [E1] [E2].
order|The latency of {sick} rose before {new} was deployed [E1] [E2].
order|{new} was deployed after errors of {sick} rose [E1] [E2].
order|Errors of {sick} rose, then {new} was deployed [E1] [E2].
order|The deploy of {calm} came before the latency of {sick} rose [E1] [E2].
order|Latency of {sick} rose 2 minutes after the deploy of {calm} [E1] [E2].
negation|{new} was never deployed [E1].
negation|{sick} was not deployed [E1].
negation|The latency of {sick} did not rise [E2].
negation|No pod of {sick} is running [E4].
negation|The errors of {calm} are not normal [E2].
negation|There were no deploys [E1].
direction|The latency of {sick} fell to {slow} s [E2].
direction|Errors of {sick} declined to {ratio} [E2].
direction|{sick} got faster [E2].
direction|Traffic of {calm} surged [E2].
scope|Every request of {sick} fails [E2].
scope|All requests to {sick} fail [E2].
scope|Only {sick} is slow [E2].
scope|All services are slow [E2].
scope|No request of {sick} fails [E2].
scope|Every product is failing [E2].
scope|None of the services is slow [E2].
scope|Only one pod of {sick} runs [E4].
person|{absent} deployed {sick} {new} at {went} UTC [E1].
person|{sick} {new} was deployed by {absent} [E1].
person|{sick} {new} was rolled back by {who} [E1].
cause|A crashing pod is the root cause [E4].
cause|The deploy of {calm} caused the latency of {sick} [E1] [E2].
cause|{later} is responsible for the slow requests [E1] [E2].
cause|A spike in traffic of {sick} caused the errors [E2].
cause|The saturated CPU of {sick} is the root cause [E2].
cause|{sick} is slow because its memory is exhausted [E2].
quotation|The logs of {sick} say "connection refused by peer" [E3].
quotation|{sick} logged "too many open files in system" [E3].
quotation|The errors read "deadline exceeded while collecting invoices" [E3].
version|v5.99.7 of {sick} went out at {went} UTC [E1].
version|{sick} went from v4.1.1 to {new} [E1].
version|{old} replaced {new} at {went} UTC [E1].
version|{later} of {sick} was deployed [E1].
host|Errors come from {sick}-9 [E3].
host|ip-10-8-3-44 is down [E4].
time|{new} was deployed at {never} UTC [E1].
time|{new} of {sick} was deployed at {later_at} UTC [E1].
time|The latency of {sick} rose since {later_at} UTC [E2].
time|{sick} recovered at {later_at} UTC [E2].
recovery|The latency of {sick} is back to normal [E2].
recovery|{sick} has recovered [E2].
other product|p99 of {calm} rose to {slow} s [E2].
other product|{calm} logged {lines} new error lines [E3].
other product|{calm} itself spends 812 ms in POST offers [E5].
other field|The CPU of {sick} is at {ratio} [E2].
other field|{sick} takes 31 ms in POST offers, normally 812 ms [E5].
other field|{lines} pods of {sick} crashed [E3] [E4].
comparison|{sick} is slower than {third} [E2].
comparison|{sick} has a higher latency than {third} [E2].
comparison|{calm} has more errors than {sick} [E2].
comparison|The latency of {calm} is lower than that of {third} [E2].
comparison|Latency of {sick} rose more than latency of {third} [E2].
share|The vast majority of requests to {sick} fail [E2].
action|{sick} was restarted at {later_at} UTC [E1].
duration|The errors of {sick} lasted 40 seconds [E2].
unit|p99 of {sick} is {slow} minutes [E2].
quotation|The error of {sick} is `upstream prematurely closed connection` [E3].
unmentioned|{sick} lost customers in Norway [E2].
unmentioned|The certificate of {sick} expired [E3].
unmentioned|{sick} {new} dropped the batch API and now calls each offer [E1] [E5].
"""
_CRASH: Final = """
number in words|{pod} restarted forty times [E1].
number in words|Two nodes are not ready [E2].
number in words|The memory of {sick} grew tenfold [E4].
number in words|A dozen error lines were logged [E3].
negation|{pod} did not crash [E1].
negation|{pod} never restarted [E1].
negation|There is no warning for {pod} [E2].
negation|The memory of {sick} did not rise [E4].
direction|The memory of {sick} fell to 2.0 GB [E4].
scope|All pods of {sick} crash [E1].
scope|All pods of {sick} are running [E1].
scope|Both pods of {sick} are ready [E1].
scope|Every node is not ready [E2].
scope|Only {calm} has pods that fail [E2].
state|{other} is in CrashLoopBackOff [E1].
state|{pod} is running and ready [E1].
state|worker-07 is healthy [E2].
state|{pod} was evicted [E1].
state|{calm} has 2 of 3 pods running [E2].
cause|The deploy of {sick} caused the crash [E1] [E5].
cause|A release of {sick} at {at} UTC is the root cause [E5].
cause|{pod} crashes because the disk is full [E1] [E4].
order|The warning of {pod} came before the memory of {sick} rose [E2] [E4].
quotation|{sick} logged "java.lang.NullPointerException in Basket" [E3].
quotation|The log says "cannot allocate memory for arena" [E3].
person|{who} restarted {pod} [E1].
person|{absent} drained worker-07 [E2].
host|worker-12 is not ready [E2].
host|The errors come from {sick}-6c9d8f7b45-aaaaa [E3].
time|The memory of {sick} rose since {never} UTC [E4].
time|{pod} was warned of at {never} UTC [E2].
recovery|The memory of {sick} is back to normal [E4].
recovery|{pod} is healthy again [E1].
other product|The memory of {calm} rose to 2.0 GB [E4].
other field|{pod} restarted 31 times [E1].
other field|The memory of {sick} is normally 2.0 GB [E4].
other notation|The memory of {sick} rose to 20,000 MB [E4].
other notation|5 out of 5 nodes are ready [E2].
version|{sick} v3.1.4 was deployed [E5].
unmentioned|A memory leak in the image cache fills the heap [E3].
unmentioned|The cluster was upgraded to 1.31 [E2].
"""
_RECOVERED: Final = """
number in words|The pool of {sick}-db is half full [E1].
number in words|Ten percent of the connections of {sick}-db are in use [E1].
number in words|The trace took nine seconds [E3].
order|{sick} recovered before v2.7.3 was deployed [E1] [E2].
order|v2.8.0 was deployed after the latency of {sick} rose [E1] [E2].
order|v2.7.3 was deployed first, then v2.8.0 [E2].
negation|v2.8.0 was not rolled back [E2].
negation|The pool of {sick}-db is not saturated [E1].
negation|{sick} has not recovered from its latency [E1].
negation|Errors of {sick} did not rise [E1].
direction|The pool of {sick}-db fell to {pool} [E1].
direction|CPU of {calm} dropped to 58 % [E4].
scope|Every request of {sick} fails [E1].
scope|Only {calm} was slow [E1].
scope|All of the time is spent in {sick} [E3].
scope|Nothing is wrong with {sick} [E1].
person|v2.8.0 was deployed by {absent} [E2].
person|{absent} rolled {sick} back to v2.7.3 [E2].
cause|The CPU of {calm} is saturated and caused it [E4].
cause|{calm} is saturated [E4].
cause|A crash of {sick} is the cause [E3].
recovery|Errors of {sick} are back to normal [E1].
recovery|{sick} recovered at {at} UTC [E1].
recovery|The latency of {sick} is back to normal since {undone} UTC [E1].
recovery|The errors of {sick} recovered at {back_at} UTC [E1].
recovery|The latency of {sick} is still {slow} s [E1].
quotation|The span says "lock wait timeout exceeded" [E3].
version|v2.9.0 of {sick} went out [E2].
version|v2.8.0 replaced v2.7.1 [E2].
time|v2.8.0 went out at {back_at} UTC [E2].
time|v2.8.0 went out at {undone} UTC [E2].
time|The pool of {sick}-db is full since {never} UTC [E1].
other product|The pool of {calm} is full [E1].
other product|Most of the time is spent in {sick} [E3].
other field|{sick}-db spends 300 ms in UPDATE [E3].
other field|The CPU of {calm} is at 98 % [E4].
other notation|The trace took 24.1 s [E3].
other notation|Each trace has 30 spans [E3].
host|db-replica-4 holds the lock [E3].
unmentioned|A missing index on invoices slows the UPDATE down [E3].
unmentioned|{sick} retried each payment [E3].
"""


def fabrications() -> Iterator[Fabrication]:
    """More than 1,000, over three kinds of incidents."""
    for made, lines in ((release, _RELEASE), (crash, _CRASH), (recovered, _RECOVERED)):
        for seed in SEEDS:
            world = made(seed)
            for line in lines.strip().splitlines():
                kind, text = line.split("|")
                yield Fabrication(kind, world, text.format_map(world.values))
