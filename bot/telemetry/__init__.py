"""What the bot says of itself: logs and metrics."""
