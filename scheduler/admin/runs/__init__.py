"""Runs in the admin: the ledger as a list, and the page of a run."""
