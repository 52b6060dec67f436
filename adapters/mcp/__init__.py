"""Tools of MCP servers: what they announce, what the operator accepted of it, and the calls."""
