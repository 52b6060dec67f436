"""HTTP to outside systems: httpx clients with limits, deadlines, trust, proxies and an egress guard."""
