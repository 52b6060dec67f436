"""Backends played from recordings: for the demo and the tests, never for a real service."""
