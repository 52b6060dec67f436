"""A transaction or a read of a database that a test holds open across its own awaits."""

from bot.store.database import Database

writing = Database.begin
reading = Database.read
