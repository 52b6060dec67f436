"""The logger that Slack's libraries are given: they log payloads below WARNING, and what people wrote stays out of logs."""

import logging

from slack_bolt.logger.messages import warning_client_prioritized_and_token_skipped

NAME = "kortex.slack_libraries"


def framework_logger() -> logging.Logger:
    """A logger that stays at WARNING whatever the root's level is; Bolt copies the level."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.WARNING)
    logger.addFilter(_tells_something)
    return logger


def _tells_something(record: logging.LogRecord) -> bool:
    """Bolt finds SLACK_BOT_TOKEN in the environment and warns that it does not use it; we do."""
    return record.getMessage() != warning_client_prioritized_and_token_skipped()
