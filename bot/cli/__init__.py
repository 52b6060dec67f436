"""The `kortex` command, one module or folder a sub-command."""
