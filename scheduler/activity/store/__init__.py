"""Where the entries of users are kept: in the database of the jobs, or in a Redis."""
