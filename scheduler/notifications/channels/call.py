"""A function of the project, called with each message."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import connections
from django.utils.module_loading import import_string

from scheduler.exceptions import ConfigurationError
from scheduler.executors.forked import only_here
from scheduler.notifications.channels.base import Channel, SendFailed, common_of, refuse_unknown_keys
from scheduler.notifications.message import Message
from scheduler.safetext import shown, told


@dataclass(frozen=True, kw_only=True, repr=False)
class Call(Channel):
    """Calls a function with the message; what it raises is a failure, and it is called again."""

    kind: ClassVar[str] = "call"
    function: Callable[[Message], object] | str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Call":
        """Read the dict of a channel; raises ConfigurationError. A dotted path is imported when it is used first."""
        refuse_unknown_keys(given, ("function",))
        function = given.get("function")
        if not (callable(function) or (isinstance(function, str) and "." in function)):
            raise ConfigurationError(f"function is {shown(function)}; give a callable or its dotted path.")
        return cls(**common_of(given, "60/min"), function=function)

    @property
    def label(self) -> str:
        if isinstance(self.function, str):
            return self.function
        return f"{getattr(self.function, '__module__', '')}.{getattr(self.function, '__qualname__', 'function')}"

    def send(self, message: Message) -> None:
        """Call it, in the thread of the caller."""
        try:
            function = import_string(self.function) if isinstance(self.function, str) else self.function
            with only_here():
                function(message)
        except Exception as error:
            raise SendFailed(f"{type(error).__name__}: {told(error)}") from error
        finally:
            connections.close_all()
