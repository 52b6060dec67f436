"""What `kortex check` asks of each part; the table of parts is `bot.cli.check.parts`."""
