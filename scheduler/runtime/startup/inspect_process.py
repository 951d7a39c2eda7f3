"""Read what this process shows of itself: its call stack, its command line, whether it is still loading."""

import os
import sys
from types import FrameType

from scheduler.runtime.startup.detect import Frame, StartDecision, decide

LOADERS = frozenset(
    {
        "_frozen_importlib",
        "_frozen_importlib_external",
        "importlib",
        "importlib._bootstrap",
        "importlib._bootstrap_external",
        "django",
        "django.apps.registry",
        "django.core.wsgi",
        "django.core.asgi",
    }
)


def decide_here(*, enabled: bool) -> StartDecision:
    """Decide for the process and the call stack of the caller."""
    frames = frames_here()
    return decide(
        argv=_command_line(frames),
        environ=os.environ,
        stack=names_of(frames),
        modules=sys.modules,
        enabled=enabled,
        parent_pid=os.getppid(),
    )


def frames_here() -> list[FrameType]:
    """Return the call stack of the caller, innermost first."""
    frames, frame = [], sys._getframe().f_back
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def names_of(frames: list[FrameType]) -> list[Frame]:
    """Reduce frames to what a decision reads."""
    return [Frame(str(frame.f_globals.get("__name__", "")), frame.f_code.co_name) for frame in frames]


def loading_frame(frames: list[FrameType]) -> FrameType | None:
    """Return the outermost frame that imports or sets up the application: while it lives, the application loads."""
    return next((f for f in reversed(frames) if f.f_globals.get("__name__") in LOADERS), None)


def lives(frame: FrameType, thread_id: int) -> bool:
    """Tell whether `frame` is still on the stack of the thread."""
    current = sys._current_frames().get(thread_id)
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None


def _command_line(frames: list[FrameType]) -> list[str]:
    # A wrapper script may hand Django another command line than its own.
    for frame in frames:
        utility = frame.f_locals.get("self") if frame.f_code.co_name == "execute" else None
        if utility is not None and frame.f_globals.get("__name__") == "django.core.management":
            return list(utility.argv)
    return list(getattr(sys, "argv", []))
