"""What `kortex check` asks of each part; the table of parts is `bot.commands.health`."""
