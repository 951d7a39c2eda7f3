"""Django Tasks: runs of jobs that say `executor="django_tasks"` are called in the workers of a backend of TASKS."""
