"""What was spent in a day, by workspace and channel, kept true by triggers of the rounds' rows.

By triggers, because replicas of the release before write rounds too and know nothing of it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DAY_US = 86_400_000_000
COLUMNS = "day, tenant, channel_id, cost_usd_micros, counted_usd_micros"
# No round is dated anew; were one, its day would follow.
CHANGES = "at, tenant, channel_id, cost_usd_micros, counted_usd_micros"


def _day(row: str) -> str:
    return f"{row}.at / {DAY_US} * {DAY_US}"


def _cost(row: str) -> str:
    return f"coalesce({row}.cost_usd_micros, 0)"


def _counted(row: str) -> str:
    return f"coalesce({row}.counted_usd_micros, {row}.cost_usd_micros, 0)"


ADD = (
    f"INSERT INTO spent_days ({COLUMNS}) VALUES ("  # noqa: S608 - our own names
    f"{_day('NEW')}, NEW.tenant, NEW.channel_id, {_cost('NEW')}, {_counted('NEW')}) "
    "ON CONFLICT (day, tenant, channel_id) DO UPDATE SET "
    "cost_usd_micros = spent_days.cost_usd_micros + excluded.cost_usd_micros, "
    "counted_usd_micros = spent_days.counted_usd_micros + excluded.counted_usd_micros;"
)
TAKE_AWAY = (
    "UPDATE spent_days SET "  # noqa: S608 - our own names
    f"cost_usd_micros = cost_usd_micros - {_cost('OLD')}, "
    f"counted_usd_micros = counted_usd_micros - {_counted('OLD')} "
    f"WHERE day = {_day('OLD')} AND tenant = OLD.tenant AND channel_id = OLD.channel_id;"
)


def upgrade() -> None:
    """Create the table and the triggers, then fill in the days that are still read."""
    op.create_table(
        "spent_days",
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("channel_id", TEXT, nullable=False),
        sa.Column("cost_usd_micros", sa.BigInteger, nullable=False),
        sa.Column("counted_usd_micros", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("day", "tenant", "channel_id", name="pk_spent_days"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # It lets no round be written until this migration ends, so that none is missed or counted
        # twice: what is filled in below is all that was there before.
        _follow_on_postgresql()
        now_us = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
    else:
        _follow_on_sqlite()
        now_us = "CAST(strftime('%s', 'now') AS INTEGER) * 1000000"
    # By the index of `at`: a lock that is held for all that was ever spent would stop every turn.
    # The day before as well, for a database whose clock is set back around midnight.
    op.execute(
        sa.text(
            f"INSERT INTO spent_days ({COLUMNS}) "  # noqa: S608 - our own names
            f"SELECT {_day('spending')}, tenant, channel_id, "
            f"SUM({_cost('spending')}), SUM({_counted('spending')}) FROM spending "
            f"WHERE at >= (SELECT {now_us} / {DAY_US} * {DAY_US} - {DAY_US}) GROUP BY 1, 2, 3"
        )
    )


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError("downgrade is not offered; restore a backup")


def _follow_on_postgresql() -> None:
    # With the rights of the tables' owner: the bot's own role needs none but to read it.
    op.execute(
        "CREATE FUNCTION spending_keep_days() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
        "SET search_path FROM CURRENT AS $$ BEGIN "
        f"IF TG_OP <> 'INSERT' THEN {TAKE_AWAY} END IF; "
        f"IF TG_OP <> 'DELETE' THEN {ADD} END IF; "
        "RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER spending_days AFTER INSERT OR DELETE OR UPDATE OF {CHANGES} ON spending "
        "FOR EACH ROW EXECUTE FUNCTION spending_keep_days()"
    )


def _follow_on_sqlite() -> None:
    for name, moment, body in (
        ("added", "INSERT", ADD),
        ("removed", "DELETE", TAKE_AWAY),
        ("changed", f"UPDATE OF {CHANGES}", f"{TAKE_AWAY} {ADD}"),
    ):
        op.execute(
            f"CREATE TRIGGER spending_day_{name} AFTER {moment} ON spending BEGIN {body} END"
        )
