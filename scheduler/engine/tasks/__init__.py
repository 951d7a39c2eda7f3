"""Tasks that were enqueued: their own way through the engine, which locks and writes no row of a job."""
