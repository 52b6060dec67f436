"""`python -m bot` is `kortex`."""

from bot.cli import main

main()
