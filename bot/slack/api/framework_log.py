"""The logger that Slack's libraries are given: they log payloads below WARNING, and payloads stay out of logs."""

import logging

NAME = "kortex.slack_libraries"


def framework_logger() -> logging.Logger:
    """A logger that stays at WARNING whatever the root's level is; Bolt copies the level."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.WARNING)
    return logger
