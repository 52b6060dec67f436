"""What the simulated shop's team wrote down: file and Markdown."""

from typing import Final

from adapters.written_pages import PageSet, read_page

PAGES: Final = (
    (
        "runbooks/checkout-slow.md",
        """\
# Checkout is slow or times out

Who is asked first: the checkout team, #team-checkout.

## After a release

Compare the p99 latency of checkout with its baseline. When it left it within minutes of a deploy of
checkout, roll that deploy back first and look for the reason afterwards: a rollback takes two minutes.
Look for many calls in a row to pricing; the batch API is there for that.

## Without a release

Look at payments and its database. A pool of connections that is in use beyond 90 % queues; see
"Connection pool exhausted".
""",
    ),
    (
        "runbooks/connection-pool-exhausted.md",
        """\
# Connection pool exhausted

Payments and orders share nothing but this failure: every connection of a Postgres database is held.

## Find who holds the connections

A report or a migration that runs long. Ask the data team, #team-data, to stop it; reports belong on the
replica. A rollback or a restart does not help: the holder comes back.
""",
    ),
    (
        "patterns/postgres.md",
        """\
# A database for a service

Postgres as a PostgresCluster (data.shop.example/v1), never as a StatefulSet of your own. Two replicas
in production, 40 connections per service, backups every night.
""",
    ),
    (
        "patterns/stateless-service.md",
        """\
# A stateless service

A Deployment with three replicas, a HorizontalPodAutoscaler on CPU at 70 %, and a PodDisruptionBudget of
one. Readiness before traffic; limits of memory always, of CPU never.
""",
    ),
)


def recorded_pages() -> PageSet:
    """The same for every incident."""
    return PageSet([read_page(file, text) for file, text in PAGES])
