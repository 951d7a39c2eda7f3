"""Metrics: what is counted, and what a scrape tells of it."""
