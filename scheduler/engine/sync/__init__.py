"""Sync: jobs follow the code, and what people and other services changed is kept."""
