"""A project whose tasks write a journal, and which can be made to fail at named points."""
