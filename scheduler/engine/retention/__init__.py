"""Retention: how long the ledger is kept, and the removal of what is older."""
