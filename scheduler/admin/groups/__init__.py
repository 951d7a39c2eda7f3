"""Groups in the admin."""
