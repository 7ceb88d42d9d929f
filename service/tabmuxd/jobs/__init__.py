"""Periodic work: APScheduler jobs that tend the log."""
