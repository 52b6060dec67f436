"""From settings to parts. With `bot.app` and `bot.service` the composition root (docs/adr/0008)."""
