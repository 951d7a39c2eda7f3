"""A project whose tasks write a journal, so that the ledger can be checked from outside."""
