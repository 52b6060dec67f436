"""Honest sentences over made-up incidents, written by hand in the styles that people and models use."""

from collections.abc import Iterator
from typing import Final

from tests.claims_worlds import World, crash, recovered, release

_RELEASE: Final = """
{new} of {sick} went out at {went} UTC [E1].
{who} deployed {sick} {new} at {went} UTC, replacing {old} [E1].
At {went} UTC {sick} was updated from {old} to {new} by {who} [E1].
There were two deploys: {sick} {new} and {calm} {later} [E1].
{calm} {later} followed at {later_at} UTC [E1].
The latest change is {calm} {later}, deployed at {later_at} UTC [E1].
Neither deploy was rolled back [E1].
{new} took 94 s to roll out [E1].
The rollout of {new} lasted about a minute and a half [E1].
p99 of {sick} rose to {slow} s (normally {usual} s) since {at} UTC [E2].
p99 latency of {sick} is {slow} s, up from {usual} s [E2].
**{sick} is slow**: p99 {slow} s vs. {usual} s usually [E2].
{sick} slowed down at {at} UTC [E2].
{sick} and {third} are slow [E2].
Latency rose in {sick} and {third}, but not in {calm} [E2].
The latency of {sick}, not of {calm}, went up [E2].
It is {sick} that is slow rather than {calm} [E2].
Errors rose in {sick}, not in {calm} [E2].
The error ratio of {sick} went from 0.4 % to {ratio:.1%} [E2].
{ratio:.1%} of the requests of {sick} fail [E2].
Normally 0.4 % of the requests of {sick} fail [E2].
Most requests of {sick} still succeed, {ratio:.1%} fail [E2].
CPU, memory and traffic of {sick} are normal [E2].
The CPU of {sick} is as usual, so this is no lack of CPU [E2].
{sick} is not saturated: its CPU and memory are within their usual range [E2].
{calm} is healthy: errors, latency, CPU, memory and traffic are all as usual [E2].
Nothing is wrong with {calm} [E2].
{calm} shows no change [E2].
Only two of the products moved: {sick} and {third} [E2].
Two products are slower than usual [E2].
{sick} is slower than before [E2].
{calm} was deployed later than {sick} [E1].
Three signals moved: the latency of {sick}, its errors, and the latency of {third} [E2].
The trouble began about 3 minutes after {new} of {sick} went out [E1] [E2].
Latency of {sick} rose after {new} was deployed [E1] [E2].
{sick} was deployed first and slowed down afterwards [E1] [E2].
The deploy of {calm} came after the latency of {sick} rose, so it is hardly the cause [E1] [E2].
{calm} {later} was deployed after the onset and is not the cause [E1] [E2].
The deploy of {sick} {new} is the most likely cause [E1] [E2].
I suspect {new}, because it went out 3 minutes before the latency rose [E1] [E2].
The cause is probably {new} of {sick} [E1] [E2].
{lines} new error lines of {sick} since {at} UTC [E3].
{sick} logs a new error: "deadline exceeded while collecting offers" [E3].
The log of {sick} has {lines} lines like "deadline exceeded while collecting offers" [E3].
The new errors ("deadline exceeded ...") come from {sick}-1 and {sick}-2 [E3].
No such error was seen before [E3].
The errors started at {at} UTC on two hosts [E3].
All 3 pods of {sick} are running [E4].
All three pods of {sick} run, none restarted [E4].
No pod of {sick} crashed [E4].
3 of 3 pods are ready, 25 minutes old [E4].
{sick}-1 is running [E4].
Crashing pods are not the cause: all of them run [E4].
It is not a crash: the pods run and have no restarts [E4].
{sick} itself spends 812 ms in POST /offers, normally 31 ms [E5].
The time of {sick} in POST /offers rose from 31 ms to 812 ms [E5].
{sick} takes 0.8 s by itself in POST /offers [E5].
POST /offers takes 26 times as long as usual [E5].
That is more than 700 ms above the usual 31 ms [E5].
At {went} UTC (two hours later in Berlin) {new} went out [E1].
I would roll {sick} back to {old} [E1].
Next: roll back {new}, then check p99 again [E1].
Whether {third} is slow on its own is not established [E2].
I could not see what {new} changed.
Do you want me to propose a rollback to {old}?
The impact: {ratio:.1%} of the requests of {sick} fail and p99 is {slow} s [E2].
Since {at} UTC, {sick} has been slow [E2].
Customers of {sick} may see timeouts [E2] [E3].
No deploy of {third} was made [E1].
{third} is slower too, with errors as usual [E2].
The trouble is in {sick}, not in the pods [E2] [E4].
{who} made both deploys [E1].
"""
_CRASH: Final = """
{pod} is in CrashLoopBackOff with {restarts} restarts [E1].
{pod} has restarted {restarts} times [E1].
One of two pods of {sick} is crashing, the other runs [E1].
1 of 2 pods of {sick} is running [E1].
{other} is running and ready [E1].
{other} is fine and four hours old [E1].
Not all pods of {sick} are running [E1].
{sick} has one healthy pod left [E1].
worker-07 is NotReady [E2].
Node worker-07 is not ready: "Kubelet stopped posting node status" [E2].
5 of 6 nodes are ready [E2].
Five of the six nodes are ready; worker-07 is not [E2].
One node is down [E2].
Kubernetes warns of {pod}: Back-off restarting failed container [E2].
Kubernetes warned of BackOff for {pod} at {warned} UTC [E2].
The BackOff warning was seen 12 times [E2].
{calm} has 3 of 3 pods up [E2].
All pods of {calm} are well [E2].
{calm} is not affected [E2].
The pods of {sick} crash, those of {calm} do not [E1] [E2].
Its log says "java.lang.OutOfMemoryError: Java heap space" [E3].
{sick} ran out of heap space: "OutOfMemoryError: Java heap space" [E3].
Three error lines of {sick} name an OutOfMemoryError [E3].
3 error lines in 30 minutes, all from {pod} [E3].
All three lines come from {pod}, none from {other} [E3].
The memory of {sick} rose to 2.0 GB, normally 400 MB [E4].
Memory rose from 0.4 GB to 1.8 GB [E4].
Memory of {sick} is 4.5 times its usual [E4].
The memory of {sick} more than quadrupled [E4].
The memory of {sick} grew since {at} UTC [E4].
Memory left its baseline at {at} UTC, with a z-score of 28 [E4].
At most 2.0 GB were in use [E4].
It used over 1.5 GB, compared with 400 MB before [E4].
The memory of {sick} is far above its baseline [E4].
There were no deploys of {sick} in that time [E5].
{sick} was not deployed [E5].
No release explains it: there were no deploys [E5].
A deploy is not the cause, as there was none [E5].
The container runs out of memory, which is the most likely cause [E3] [E4].
Memory rose first; the warning of {pod} came 2 minutes later [E2] [E4].
{pod} crashes because it runs out of heap space [E1] [E3].
Likely cause: the heap is too small or leaks; which of the two is unknown [E3] [E4].
Consider raising the memory limit of {sick}.
Run `kubectl describe pod {pod}` for the limits.
The restarts of {pod} ({restarts}) are the strongest sign [E1].
Ready: 0/1 for {pod}, 1/1 for {other} [E1].
{pod} is 31 minutes old [E1].
Of six nodes one, worker-07, is not ready [E2].
Whether worker-07 hosts {pod} is not known [E1] [E2].
The kubelet of worker-07 stopped posting its status [E2].
The last error came at {at} UTC or later [E3].
1.8 GB (1.7 GiB) is the median of the window [E4].
The node and the pod fail at about the same time [E2].
No other pod of {sick} was restarted [E1].
There is no sign of a deploy [E5].
{sick} keeps crashing [E1].
Only {pod} is crashing [E1].
This is about {sick}, not about {calm} [E2].
{pod} was not evicted, it crashes [E1].
I did not look at the disk.
Nobody deployed anything to {sick} [E5].
The memory (2 GB) is the highest since yesterday [E4].
The heap fills up within minutes [E3] [E4].
{sick} is degraded, not down: one of its two pods still serves [E1].
"""
_RECOVERED: Final = """
p99 of {sick} rose to {slow} s at {at} UTC and is usual again since {back_at} UTC [E1].
The latency of {sick} is back to normal since {back_at} UTC [E1].
The latency of {sick} has recovered [E1].
Latency of {sick} recovered at {back_at} UTC, its errors did not [E1].
{sick} is fast again, but {ratio:.1%} of its requests still fail [E1].
Errors of {sick} are still high: {ratio:.1%}, normally 0.3 % [E1].
The errors of {sick} have not recovered [E1].
It is not over: errors are still up [E1].
The pool of {sick}-db is {pool:.1%} full, normally 31 % [E1].
The connection pool of {sick}-db is saturated [E1].
The pool of {sick} is nearly exhausted ({pool:.1%}) [E1].
{pool:.1%} of the connections of {sick}-db are in use [E1].
The pool of {sick}-db tripled its usage [E1].
CPU and memory of {sick}-db are normal [E1].
{calm} is as usual [E1].
All signals of {calm} are within their usual range [E1].
v2.8.0 went out 4 minutes before the latency of {sick} rose [E1] [E2].
v2.8.0 was deployed by {who} and rolled back [E2].
v2.8.0 was rolled back to v2.7.3 at {undone} UTC [E2].
{who} rolled {sick} back to v2.7.3 at {undone} UTC [E2].
v2.7.3 replaced v2.8.0 at {undone} UTC [E2].
Two deploys: v2.8.0, and v2.7.3 again at {undone} UTC [E2].
After the rollback the latency of {sick} recovered [E1] [E2].
The latency of {sick} was usual again 3 minutes after the rollback [E1] [E2].
v2.8.0 came first, then the rollback to v2.7.3 [E2].
The rollback is followed by a recovery of latency at {back_at} UTC [E1] [E2].
The trace took 2.41 s, of which {sick}-db spent 2.1 s [E3].
Most of the time is spent in {sick}-db [E3].
{sick}-db spends 2.1 s in UPDATE [E3].
87 % of the trace is spent in {sick}-db [E3].
{sick} itself takes only 300 ms [E3].
The request took 2.4 seconds, almost all of it in the database [E3].
The trace has three spans and no errors [E3].
The edge itself takes 10 ms [E3].
The slow part is the UPDATE, not {sick} itself [E3].
CPU of {calm} peaked at 58 % [E4].
CPU of {calm} is at most 58 %, so it is not saturated [E4].
58 %, so not saturated [E4].
The CPU of {calm} is between 41 % and 58 % [E4].
The CPU of {calm} averaged 50 % [E4].
The CPU of {calm} is about half used [E4].
{calm} has room: its CPU never exceeded 60 % [E4].
CPU of {calm} is not the cause [E4].
The exhausted pool of {sick}-db is the likely cause [E1] [E3].
{sick} was slow because its database was saturated [E1] [E3].
It was the pool, not the CPU [E1].
I see no sign of a CPU problem [E1] [E4].
Next: raise the pool size or find the slow UPDATE.
Was v2.8.0 tested with this load?
p99 peaked at {slow} s [E1].
The p99 of {sick} is 0.21 s now [E1].
Now p99 is at 212 ms, which is usual [E1].
Latency is fine, errors are not [E1].
In {sick} errors rose, in {calm} they did not [E1].
The pool filled up at {at} UTC [E1].
From {at} UTC to {back_at} UTC {sick} was slow [E1].
{sick} was slow for 14 minutes [E1].
Nothing moved in {calm} [E1].
v2.8.0 is not running any more [E2].
The status of both deploys is ok [E2].
Each deploy took 94 seconds [E2].
It would help to know why the errors stay up.
The errors may need another look: they began at {at} UTC and go on [E1].
I did not find a deploy of {calm} [E2].
No deploy of {calm} was made [E2].
At {back_at} UTC latency recovered; the rollback was at {undone} UTC [E1] [E2].
The UPDATE accounts for most of the request [E3].
One trace is little evidence [E3].
{sick}-db is slow and its pool is full [E1] [E3].
"""


def honest_sentences(seed: int) -> Iterator[tuple[World, str]]:
    """More than 200, each with its world."""
    for made, lines in ((release, _RELEASE), (crash, _CRASH), (recovered, _RECOVERED)):
        world = made(seed)
        for line in lines.strip().splitlines():
            yield world, line.format_map(world.values)
