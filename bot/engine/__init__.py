"""Durable execution, on DBOS: no other package imports it."""
