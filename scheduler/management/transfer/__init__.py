"""Transfer: schedules as a file, out of this database and into it, and from other schedulers. Loads none of these."""
