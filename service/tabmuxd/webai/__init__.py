"""Conversations with web AI pages: sessions, turns, the rule when an answer is whole."""
