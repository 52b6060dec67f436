"""Where the audit log is delivered: an HTTP collector, an object store, NATS."""
