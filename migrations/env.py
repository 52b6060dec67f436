"""Runs the migrations on the connection that `bot.store.schema` hands over."""

from alembic import context

from bot.store.columns import metadata
from bot.store.tables import is_declared

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_name=is_declared,
    render_as_batch=True,  # SQLite changes a table by copying it
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
