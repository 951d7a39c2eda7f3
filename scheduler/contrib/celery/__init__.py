"""Celery: runs of jobs that say `executor="celery"` are called in the workers of the project's Celery app."""
