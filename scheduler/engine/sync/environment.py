"""Environment guard: a copied database does not run until a person confirms that it may."""

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.models import Environment


def foreign_environment(engine: Engine) -> str | None:
    """Return the mark of the database when it is not ours; an unmarked database takes ours (SCHEDULER_ENVIRONMENT)."""
    marks = Environment.objects.using(engine.using)
    mark = marks.values_list("name", flat=True).first()
    if mark is None and conf.ENVIRONMENT:
        marks.bulk_create([Environment(name=conf.ENVIRONMENT)], ignore_conflicts=True)
    return mark if mark is not None and mark != conf.ENVIRONMENT else None


def confirm_environment() -> None:
    """Make this database ours: its jobs may run here from now on."""
    engine = Engine()
    with write_transaction(engine.using):
        Environment.objects.using(engine.using).all().delete()
        if conf.ENVIRONMENT:
            Environment.objects.using(engine.using).create(name=conf.ENVIRONMENT)
