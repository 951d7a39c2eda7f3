"""Prompt sessions: jobs that hand a prompt to a session of an assistant or agent, over HTTP."""

from scheduler.contrib.sessions.prompt import send_prompt

__all__ = ["send_prompt"]
