"""What the `kortex` command does, apart from `bot.cli`, which reads the arguments."""
