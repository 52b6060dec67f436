"""True and made-up statements over two further incidents, in the ways that models put them."""

from collections.abc import Iterator
from typing import Final

from tests.claims_incidents import backlog, configuration
from tests.claims_worlds import World

_TRUE_BACKLOG: Final = """
courier's queue depth climbed from 140 to 91,250 [E2].
The queue of courier grew to about 91,000 messages, normally 140 [E2].
courier's p95 latency went from 0.4 s to 12.6 s starting around {p0} UTC [E2].
p95 latency for courier jumped to 12.6 seconds (baseline 0.4 s) [E2].
The p95 of courier is roughly 31 times its baseline [E2].
31% of courier's requests are failing, up from 0.2% [E2].
The error rate of courier increased from 0.2 % to 31 % at {p0} [E2].
courier's error ratio peaked at 31% [E2].
ledgerbot's CPU rose to 93 %, compared with 34 % normally [E2].
CPU usage on ledgerbot is at 93%, nearly three times its usual 34% [E2].
ledgerbot's CPU started climbing at {m2} UTC [E2].
ledgerbot's errors, latency and memory are within their normal range [E2].
mailroom looks healthy: CPU, errors, latency, memory and traffic are normal [E2].
mailroom is unaffected [E2].
Memory and CPU of courier have not changed [E2].
courier currently handles 64 requests per second [E2].
mailroom receives about 210 requests a second [E2].
Traffic to mailroom is stable at 210 rps [E7].
mailroom's traffic stayed flat (210 req/s, baseline 208) [E7].
No anomaly in mailroom's request rate [E7].
courier logged 412 new error lines since {p1} UTC [E3].
There are 412 new errors in courier's logs: "lease lost for partition 7: rebalance in progress" [E3].
The new errors from courier come from host courier-2 [E3].
Warnings from courier increased from 20 to 390 [E3].
390 warning lines from courier, up from 20 before [E3].
mailroom's SMTP errors have stopped: 14 earlier, none now [E3].
The errors "smtp relay greylisted us" of mailroom no longer appear [E3].
courier's logs contain "rebalance in progress" [E3].
ledgerbot v3.9.1 was deployed at {m12} UTC by tamsin, replacing v3.9.0 [E1].
tamsin shipped ledgerbot v3.9.1 at {m12} UTC [E1].
ledgerbot was upgraded from v3.9.0 to v3.9.1 at {m12} UTC [E1].
Two deployments were recorded: ledgerbot v3.9.1 and mailroom v12.0.4 [E1].
mailroom v12.0.4 was rolled out by ci at {m190} UTC [E1].
courier itself was not deployed [E1].
There was no deployment of courier in this window [E1].
The ledgerbot deploy happened 12 minutes before courier slowed down [E1] [E2].
courier's latency rose after ledgerbot v3.9.1 was deployed [E1] [E2].
ledgerbot v3.9.1 went out before its CPU rose [E1] [E2].
1 of 4 courier pods is in CrashLoopBackOff [E4].
One of the four courier pods is crashing; the other three are running [E4].
Three of four courier pods are ready [E4].
3/4 courier pods are running [E4].
{pod} has restarted 6 times [E4].
Pod {pod} is in CrashLoopBackOff with 6 restarts [E4].
courier-7b5d9c6f8d-m2wbn is running and has not restarted [E4].
The courier pods are 3 hours old [E4].
{pod} was OOM-killed 6 times [E5].
Kubernetes reported OOMKilling for {pod} at {p3} UTC [E5].
The event says "Memory cgroup out of memory: Killed process 1 (java)" [E5].
BackOff events for {pod}: 17 [E5].
The trace took 14.2 s in total, of which courier spent 11.9 s [E6].
courier accounts for 84 % of the trace [E6].
Most of the time in the trace is spent in courier [E6].
ledgerbot took 2.18 s in append [E6].
mailroom only took 80 ms [E6].
The request lasted 14.2 seconds across 4 spans [E6].
ledgerbot's logs could not be fetched (upstream 503) [E8].
I couldn't read the logs of ledgerbot [E8].
Both courier and ledgerbot are abnormal [E2].
Only ledgerbot and courier moved; mailroom did not [E2].
"""
_TRUE_CONFIGURATION: Final = """
beacon v0.44.0 was deployed at {m6} UTC by okoro [E1].
okoro deployed v0.44.0 of beacon at {m6}, and lindqvist rolled it back to v0.43.7 at {p19} [E1].
v0.44.0 was rolled back to v0.43.7 at {p19} UTC [E1].
lindqvist rolled beacon back to v0.43.7 at {p19} UTC [E1].
beacon is running v0.43.7 again since {p19} UTC [E1].
v0.43.7 replaced v0.44.0 at {p19} UTC [E1].
The rollback happened 25 minutes after the deploy [E1].
v0.44.0 was live for 25 minutes [E1].
There were two deploys of beacon [E1].
beacon's error rate rose from 0.1 % to 42 % at {p0} UTC [E2].
42% of beacon's requests failed, normally 0.1% [E2].
beacon's errors are back to normal since {p21} UTC [E2].
Error rate recovered at {p21} and latency at {p22} UTC [E2].
beacon's p99 latency rose to 3.4 s (normally 150 ms) and recovered at {p22} UTC [E2].
beacon's p99 is now 160 ms, back at its baseline [E2].
p99 latency peaked at 3.4 seconds [E2].
p99 of beacon was about 23 times its normal value [E2].
cinder's traffic dropped from 310 to 95 requests per second [E2].
Traffic to cinder fell to 95 rps, usually 310 rps [E2].
cinder's traffic has recovered since {p22} UTC [E2].
cinder's request rate is 305 per second now [E2].
beacon-cache memory grew from 1.2 GB to 3.9 GB [E2].
The memory of beacon-cache more than tripled to 3.9 GB [E2].
beacon-cache memory is still elevated at 3.8 GB [E2].
beacon-cache has not recovered: its memory is still high [E2].
atlasmap was not affected [E2].
atlasmap's latency and errors are normal [E2].
CPU, memory and traffic of beacon stayed normal [E2].
cinder's latency did not change [E2].
beacon's errors lasted 21 minutes [E2].
The incident lasted from {p0} to {p22} UTC [E2].
beacon was slow from {p0} UTC until {p22} UTC [E2].
Errors began 6 minutes after v0.44.0 was deployed [E1] [E2].
The errors of beacon started after the deploy of v0.44.0 [E1] [E2].
beacon's error rate recovered two minutes after the rollback [E1] [E2].
After the rollback, beacon's latency went back to normal [E1] [E2].
beacon recovered after it was rolled back to v0.43.7 [E1] [E2].
The error ratio ranged between 0.1 % and 42 % [E3].
beacon's error ratio averaged 21 % over the window [E3].
The error ratio of beacon peaked at 42% [E3].
At the end the error ratio was 0.1 % [E3].
All 6 beacon pods are running [E4].
All six pods are healthy and none restarted [E4].
6/6 beacon pods are ready [E4].
No beacon pod restarted [E4].
beacon's pods are 9 hours old [E4].
44 % of GET /tiles requests of beacon failed, none before [E5].
beacon's own time in GET /tiles increased from 22 ms to 940 ms [E5].
GET /tiles took 940 ms in beacon itself [E5].
GET /tiles in beacon became 43 times slower [E5].
A similar incident was recorded: "beacon 500s after config change" [E6].
One past incident matches, inc-221 [E6].
It was resolved by "Reverted tiles.ttl" [E6].
9 error lines of beacon say "config key tiles.ttl missing" [E7].
beacon logged 9 errors, all "config key tiles.ttl missing, refusing to serve" [E7].
Nine error lines were found [E7].
The last error was logged at {p18} UTC [E7].
The first error appeared at {p1} UTC [E7].
Errors were seen on beacon-2 and beacon-4 [E7].
No errors were logged after {p18} UTC [E7].
"""
_FALSE_BACKLOG: Final = """
courier's queue depth climbed from 91,250 to 140 [E2].
The queue of ledgerbot grew to 91,250 messages [E2].
courier's p95 latency went from 0.4 s to 12.6 s starting around {m12} UTC [E2].
courier's p99 latency is 12.6 s [E2].
31% of ledgerbot's requests are failing, up from 0.2% [E2].
ledgerbot's CPU rose to 34 %, normally 93 % [E2].
ledgerbot's memory rose to 93 % [E2].
mailroom is slow since {p0} UTC [E2].
mailroom's traffic surged to 210 rps [E7].
courier logged 390 new error lines [E3].
mailroom logged 14 new errors [E3].
Warnings from courier fell from 390 to 20 [E3].
mailroom v3.9.1 was deployed at {m12} UTC by tamsin [E1].
ledgerbot v3.9.0 was deployed at {m12} UTC by tamsin [E1].
tamsin deployed mailroom v12.0.4 at {m190} UTC [E1].
ledgerbot v3.9.1 was deployed 12 minutes after courier slowed down [E1] [E2].
courier slowed down 5 minutes after the ledgerbot deploy [E1] [E2].
ledgerbot v3.9.1 was rolled back [E1].
Three of four courier pods are in CrashLoopBackOff [E4].
All four courier pods are ready [E4].
{pod} has restarted 17 times [E4].
courier-7b5d9c6f8d-m2wbn has restarted 6 times [E4].
{pod} was OOM-killed 17 times [E5].
courier-7b5d9c6f8d-p8xtc was OOM-killed 6 times [E5].
The trace spent 11.9 s in ledgerbot [E6].
mailroom accounts for 84 % of the trace [E6].
ledgerbot's logs contain "rebalance in progress" [E3].
Every mailroom request fails [E2].
courier has recovered since {p15} UTC [E2].
The latency of courier is back to normal [E2].
courier's logs no longer contain "lease lost for partition 7" [E3].
mailroom's SMTP errors are new [E3].
mailroom logs new errors: "smtp relay greylisted us" [E3].
courier's memory peaked at 12.6 s [E2].
There was no deployment of ledgerbot [E1].
ledgerbot was not deployed [E1].
No courier pod restarted [E4].
None of the courier pods restarted [E4].
ledgerbot is unaffected [E2].
ledgerbot is healthy [E2].
courier has recovered [E2].
The trace took 11.9 s [E6].
The trace lasted 2.18 s [E6].
courier's queue is normally 91,250 [E2].
courier's queue depth fell to 140 [E2].
Three deployments were recorded: ledgerbot v3.9.1 and mailroom v12.0.4 [E1].
Two deployments were recorded: ledgerbot v12.0.4 and mailroom v3.9.1 [E1].
There were two deploys of ledgerbot [E1].
ledgerbot's errors, latency and CPU are normal [E2].
Warnings from mailroom increased from 20 to 390 [E3].
390 warning lines from mailroom [E3].
courier logged 412 warnings [E3].
The new errors come from host courier-1 [E3].
Kubernetes reported OOMKilling for courier-7b5d9c6f8d-m2wbn at {p3} UTC [E5].
{pod} was OOM-killed at {p0} UTC [E5].
BackOff events for {pod}: 6 [E5].
The other three courier pods are crashing [E4].
2/4 courier pods are running [E4].
4/4 courier pods are ready [E4].
The courier pods are 9 hours old [E4].
ledgerbot took 80 ms in append [E6].
mailroom only took 11.9 s [E6].
The request lasted 14.2 seconds across 9 spans [E6].
mailroom's traffic peaked at 210 rps [E7].
courier began to slow down at {m12} UTC [E2].
ledgerbot's latency began to rise at {m2} UTC [E2].
ledgerbot was upgraded from v3.9.1 to v3.9.0 at {m12} UTC [E1].
ledgerbot was upgraded from v3.9.0 to v3.9.1 at {m190} UTC [E1].
The memory of courier is still high [E2].
courier's CPU averaged 93 % [E2].
"""
_FALSE_CONFIGURATION: Final = """
beacon v0.43.7 was deployed at {m6} UTC by okoro [E1].
okoro rolled beacon back to v0.43.7 at {p19} UTC [E1].
lindqvist deployed beacon v0.44.0 at {m6} UTC [E1].
v0.43.7 was rolled back to v0.44.0 at {p19} UTC [E1].
v0.44.0 was rolled back at {m6} UTC [E1].
beacon is running v0.44.0 since {p19} UTC [E1].
v0.44.0 was live for 40 minutes [E1].
beacon's errors are back to normal since {p19} UTC [E2].
beacon's error rate is still 42 % [E2].
beacon-cache memory is back to normal [E2].
beacon-cache memory fell from 3.9 GB to 1.2 GB [E2].
cinder's traffic rose from 95 to 310 requests per second [E2].
cinder's latency rose to 3.4 s [E2].
atlasmap failed 42% of its requests [E2].
beacon's p50 latency rose to 3.4 s [E2].
beacon was slow from {p0} UTC until {p40} UTC [E2].
The rollback happened 2 minutes after the deploy [E1].
beacon recovered before it was rolled back [E1] [E2].
Errors began before v0.44.0 was deployed [E1] [E2].
beacon's errors recovered 15 minutes after the rollback [E1] [E2].
The error ratio averaged 42 % over the window [E3].
The error ratio never exceeded 20 % [E3].
Two beacon pods restarted [E4].
Five of six beacon pods are ready [E4].
44 % of GET /tiles requests of cinder failed [E5].
beacon's own time in GET /tiles fell from 940 ms to 22 ms [E5].
Three past incidents match [E6].
21 error lines of beacon say "config key tiles.ttl missing" [E7].
The last error was logged at {p25} UTC [E7].
Errors were seen on beacon-9 [E7].
beacon was not deployed [E1].
There was no deployment of beacon in this window [E1].
The first error appeared at {p18} UTC [E7].
The last error was logged at {p1} UTC [E7].
beacon has not recovered [E2].
beacon's errors have not recovered [E2].
beacon-cache has recovered [E2].
The error ratio peaked at 21 % [E3].
The error ratio ranged between 0.1 % and 21 % [E3].
The error ratio ranged between 21 % and 42 % [E3].
okoro rolled it back to v0.43.7 [E1].
The rollback happened 25 minutes before the deploy [E1].
Error rate recovered at {p0} and latency at {p9} UTC [E2].
beacon's p99 is now 3.4 s [E2].
beacon's errors lasted 40 minutes [E2].
cinder's traffic is still low, at 95 rps [E2].
Errors began 20 minutes after v0.44.0 was deployed [E1] [E2].
44 % of GET /tiles requests of beacon failed, 20 % before [E5].
GET /tiles in beacon became 10 times slower [E5].
Two beacon pods are crashing [E4].
beacon's pods are 3 hours old [E4].
9 error lines of atlasmap say "config key tiles.ttl missing" [E7].
atlasmap began to slow down at {p0} UTC [E2].
No errors of beacon were logged [E7].
beacon's latency has not changed [E2].
beacon was not affected [E2].
The maximum error ratio was 0.1 % [E3].
beacon's memory remains high [E2].
All 6 beacon pods restarted [E4].
v0.44.0 replaced v0.43.7 at {p19} UTC [E1].
"""


def true_statements() -> Iterator[tuple[World, str]]:
    """Each with the incident that it is about."""
    yield from _about(backlog(), _TRUE_BACKLOG)
    yield from _about(configuration(), _TRUE_CONFIGURATION)


def made_up_statements() -> Iterator[tuple[World, str]]:
    """Each differs from what the results say in one thing."""
    yield from _about(backlog(), _FALSE_BACKLOG)
    yield from _about(configuration(), _FALSE_CONFIGURATION)


def _about(world: World, lines: str) -> Iterator[tuple[World, str]]:
    for line in lines.strip().splitlines():
        yield world, line.format_map(world.values)
