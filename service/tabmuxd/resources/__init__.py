"""Frozen values that every part of the server speaks of: resources, events, names and refusals."""
