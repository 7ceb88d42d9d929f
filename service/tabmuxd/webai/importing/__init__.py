"""Conversations of other tools: read from their files, judged, and kept as sessions with their turns."""
