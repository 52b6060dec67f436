"""Nirmata's language model service."""
