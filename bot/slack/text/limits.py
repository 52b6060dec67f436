"""Slack's limits on what a message may hold, each with where it comes from."""

# docs.slack.dev/reference/block-kit/blocks: "up to 50 blocks in each message".
MAX_BLOCKS = 50

# docs.slack.dev/reference/block-kit/blocks/markdown-block: 12,000 characters over all of them.
MARKDOWN_CHARS = 12_000

# slackapi/bolt-js discussion 2509: above about this sum Slack answers msg_blocks_too_long.
MESSAGE_CHARS = 13_200

# docs.slack.dev/reference/block-kit/blocks/section-block: text of one section.
SECTION_CHARS = 3_000

# docs.slack.dev/reference/block-kit/blocks/context-block: elements of one context block.
CONTEXT_ELEMENTS = 10

# docs.slack.dev/reference/block-kit/blocks/actions-block: 25.
ACTIONS_ELEMENTS = 25

# docs.slack.dev/reference/block-kit/block-elements/button-element.
BUTTON_TEXT_CHARS = 75
BUTTON_VALUE_CHARS = 2_000
SPOKEN_CHARS = 75
BUTTON_URL_CHARS = 3_000

# docs.slack.dev/reference/block-kit/composition-objects/option-object and .../option-group-object,
# docs.slack.dev/reference/block-kit/block-elements/select-menu-element: options in a menu or group.
OPTION_TEXT_CHARS = 75
OPTION_VALUE_CHARS = 150
PLACEHOLDER_CHARS = 150
MAX_OPTIONS = 100
MAX_OPTION_GROUPS = 100

# docs.slack.dev/reference/methods/chat.update: 4,000, counted in bytes after escaping & < >.
UPDATE_TEXT_BYTES = 4_000

# What one message of ours holds at most: below 4,000, so that a cursor or a fence still fits.
PART_BYTES = 3_800

# docs.slack.dev/reference/block-kit/blocks/data-visualization-block; two charts in a message is not
# published (vercel/chat pull request 696).
MAX_CHARTS = 2
CHART_TITLE_CHARS = 50
CHART_AXIS_CHARS = 50
CHART_NAME_CHARS = 20
CHART_POINTS = 20
