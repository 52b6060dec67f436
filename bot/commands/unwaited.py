"""Threads that nobody waits for."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import TypeVar

Made = TypeVar("Made")


class UnwaitedThreads(ThreadPoolExecutor):
    """A thread for each piece of work, and nobody waits for it at the end.

    A name server that is away holds the thread of each name for 5 to 30 s (resolv.conf(5)), and
    nothing ends it: in a pool, a few of those keep what is well waiting, and then the exit.
    """

    def submit(
        self, work: Callable[..., Made], /, *arguments: object, **named: object
    ) -> Future[Made]:
        """Begin it now."""
        future: Future[Made] = Future()
        Thread(target=_run, args=(future, work, arguments, named), daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is kept that would have to end."""


def _run(
    future: Future[Made],
    work: Callable[..., Made],
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(*arguments, **named))
    except BaseException as error:  # noqa: BLE001 - as of any executor: it is raised where it is waited for
        future.set_exception(error)
