"""The configuration: its shape, and how it is read from kortex.toml and the environment."""
