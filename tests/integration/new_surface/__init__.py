"""A surface that the product does not have, as docs/contributing/a-surface.md says to write one."""
