"""`kortex chat`: a conversation with a running Kortex in a terminal, over its HTTP API."""
