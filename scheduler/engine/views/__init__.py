"""Views: what jobs and their ledger look like to people and monitors. Reads only."""
