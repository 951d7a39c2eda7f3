"""An app that only records in which processes it would start the scheduler."""
