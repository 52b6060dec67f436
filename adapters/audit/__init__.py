"""Where the audit trail is delivered: an HTTP collector, an object store, NATS."""
