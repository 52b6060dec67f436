"""`python -m bot` is `kortex`."""

from bot.cli.main import main

main()
