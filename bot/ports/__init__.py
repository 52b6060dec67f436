"""What the conversation and the actions need from the outside, in domain terms, a module a neighbour.

Implementations: `bot.store` (rows), a chat platform's room (people see), `bot.engine` (durability).
Every method may raise the errors named with it and no others.
"""
