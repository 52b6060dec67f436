"""A table of a release to come is thought of before it keeps what cannot be deleted."""

import pytest

from bot.store import data_export
from bot.store.columns import metadata
from bot.store.data_export import Subject, SubjectRecords
from bot.store.database import Database

# Nothing in them is of a conversation or a person, but in `audit`, which is erased, and `channel_names`.
OF_NOBODY = {
    "audit",
    "audit_checkpoints",
    "audit_sinks",
    "budget_alerts",
    "channel_names",
    "events",
    "installations",
    "oauth_states",
    "origin",
    "replicas",
    "schema_served",
    "spent_days",  # of a channel, and kept as what its rounds cost is
    "accepted",  # until its turn runs
    "tickets",  # there while a turn runs, which is refused
}


def test_every_table_is_covered_or_impersonal() -> None:
    nowhere: Database = None  # type: ignore[assignment]
    subjects = Subject(session="s"), Subject(person="p")
    records = [SubjectRecords(nowhere, each) for each in subjects]

    covered = {table.name for each in records for table, _ in (*each._own(), *each._kept())}
    covered |= {table.name for table in data_export._OF_A_TURN} | {"turns"}

    assert covered | OF_NOBODY == set(metadata.tables)
    assert not covered & OF_NOBODY


@pytest.mark.parametrize(("session", "person"), [("", ""), ("s", "p")])
def test_a_subject_is_a_session_or_a_person(session: str, person: str) -> None:
    with pytest.raises(ValueError, match="either"):
        Subject(session, person)
