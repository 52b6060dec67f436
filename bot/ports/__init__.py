"""The interfaces of the conversation and the actions to the outside; one module per neighbour.

Implementations: `bot.store` (rows), a chat platform's package (messages), `bot.engine`
(durability). Every method may raise only the errors named with it.
"""
