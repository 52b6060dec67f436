"""Redaction: rules as data, the engine that runs them, placeholders, and streamed text."""
