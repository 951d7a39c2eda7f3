"""Backfill from the page of a job."""
