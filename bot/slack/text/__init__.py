"""Text and blocks that Slack can be given: escaped, cut, with links that may be followed."""
