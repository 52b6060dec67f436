"""From settings to the parts that `bot.app` puts together. Concrete classes are named here and there only."""
