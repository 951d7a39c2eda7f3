"""The task as people choose it for their jobs; its own job runs by hand only."""

from scheduler.contrib.sessions.prompt import send_prompt
from scheduler.registry import register

register("send_prompt", description="The task for jobs of your own that send a prompt to a session.")(send_prompt)
