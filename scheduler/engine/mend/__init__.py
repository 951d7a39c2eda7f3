"""Mend: compare stored state with the rows it is derived from, and repair what differs."""
