"""Rows: the database side of the ports."""
