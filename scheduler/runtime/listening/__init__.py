"""Listening: on PostgreSQL, processes wake each other when something has changed. Without it each looks by itself."""
