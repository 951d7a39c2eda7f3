"""Journal: what the handlers themselves would have written down, whatever the ledger says."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Entry:
    """A handler began (`status` is “began”), ended with a status, or was killed with its process."""

    status: str
    at: datetime
    node: str
    run: int
    job: int
    slot: datetime
    token: int


@dataclass
class Journal:
    """All entries in the order in which they were made."""

    entries: list[Entry] = field(default_factory=list)
    by_claim: dict[tuple[int, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """Entries of one run under one token."""

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.by_claim[entry.run, entry.token].append(entry)

    def statuses(self, run: int, token: int) -> list[str]:
        """Return what happened to a run under one token, in order."""
        return [entry.status for entry in self.by_claim.get((run, token), [])]
