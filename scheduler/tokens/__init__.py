"""Tokens: who may call the REST API without a session. Only their hashes are stored."""
