"""Locks: which of several databases runs a slot. With one database none is needed, and nothing here is imported."""
