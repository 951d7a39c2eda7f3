"""Bearer tokens of the REST API in the admin."""
