"""Redaction: rules as data, the matcher that runs them, placeholders, and streamed text."""
