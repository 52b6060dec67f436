"""The composition root: from settings to a running bot, and to its drained end (docs/adr/0008)."""
