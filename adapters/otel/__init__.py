"""OpenTelemetry exporters that stay inside the egress guard (the extra `kortex[otel]`)."""
