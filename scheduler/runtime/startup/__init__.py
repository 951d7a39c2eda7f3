"""Startup: start the scheduler in serving processes, and only there, and stop it with them."""
