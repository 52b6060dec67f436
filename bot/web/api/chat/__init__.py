"""Conversations over HTTP as a chat platform: where answers grow, cards are kept, and people are known."""
