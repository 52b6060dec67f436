"""How much of a core the audit log's own reading may take from the answers: a share, then a rest."""

from typing import Final

# For as long as there is much to read. To the log that is 800 rows a second of an idle bot, and 150 of
# one with four turns a second, which make 50: what waited for the database counts as work.
SHARE: Final = 0.1
# Longer runs waited for the database or its writer, and a longer rest would not help.
LONGEST_REST_S: Final = 2.0


def rest_s(took_s: float) -> float:
    """For how long to rest after work that took so long."""
    return min(took_s * (1 / SHARE - 1), LONGEST_REST_S)
