"""A small project whose tasks the tests of the process executor run in real children."""
