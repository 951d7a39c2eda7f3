"""A measured figure beside its goal, and the table of them."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`goal` is the most (or, with `at_least`, the least) the value may be; None: shown for information."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "met" if (self.value >= self.goal if self.at_least else self.value <= self.goal) else "MISSED"

    def cells(self) -> tuple[str, ...]:
        sign = "≥" if self.at_least else "≤"
        goal = "" if self.goal is None else f"{sign} {number(self.goal)} {self.unit}"
        return self.name, f"{number(self.value)} {self.unit}", goal, self.verdict, self.note


def number(value: float) -> str:
    """Return a number with as many digits as it is worth."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as aligned columns."""
    rows = [("figure", "measured", "goal", "verdict", "note"), *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = {1, 2}
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width) for index, (cell, width) in enumerate(pairs)
        )
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    )
    return "\n".join(line.rstrip() for line in lines)
