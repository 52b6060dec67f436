"""Broken copies of what keeps an alert from opening two threads, or none."""

from tests.mutants.mutant import Mutant

_KILL = "tests/scenario/test_durability_alerts.py::"
_STORE = "tests/contract/test_store_alerts.py::"
_THREADS = "tests/unit/bot/alerts/test_threads.py::"

ALERT_MUTANTS = (
    Mutant(
        "a message that an earlier try may have posted is not looked for",
        "bot/alerts/threads.py",
        "posted = await self._surface.open_alerts(thread, place, may_be_there=tried)",
        "posted = await self._surface.open_alerts(thread, place, may_be_there=False)",
        (
            f"{_THREADS}test_a_failure_leads_to_one_message_and_one_turn",
            f"{_KILL}test_a_restart_after_a_kill_finishes_the_alert",
        ),
    ),
    Mutant(
        "requests that come at once are not filed one after the other",
        "bot/store/alerts.py",
        "            await lock_alerts(connection)\n",
        "",
        (f"{_STORE}test_replicas_that_get_an_alert_at_once_open_one_thread[postgresql]",),
    ),
    Mutant(
        "the message stored last is the thread's",
        "bot/store/alerts.py",
        "where(this, threads.c.thread_ts.is_(None)).values(thread_ts=ts)",
        "where(this).values(thread_ts=ts)",
        (
            f"{_STORE}test_the_first_message_stays_the_threads_and_is_found_by_its_place",
            f"{_THREADS}test_a_frozen_process_deletes_its_duplicate_message",
        ),
    ),
    Mutant(
        "what is due to be asked counts as shown before it was asked",
        "bot/alerts/threads.py",
        '        except TimeoutError:\n            log.warning("alerts.thread.unconfirmed", thread=thread.id)\n            return\n',
        '        except (TimeoutError, StorageUnavailable):\n            log.warning("alerts.thread.unconfirmed", thread=thread.id)\n',
        (f"{_THREADS}test_a_failure_leads_to_one_message_and_one_turn[the start fails]",),
    ),
)
