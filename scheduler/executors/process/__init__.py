"""Process: a run in an interpreter of its own."""
