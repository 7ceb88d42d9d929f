"""Acting in one page: scripts."""
