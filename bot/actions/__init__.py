"""Proposals: raised by a model, decided by people, dispatched by us."""
