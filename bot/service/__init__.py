"""A running bot, from its start to its drained end. Part of the composition root (docs/adr/0008)."""
