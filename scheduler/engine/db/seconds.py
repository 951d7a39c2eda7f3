"""Seconds: instants as numbers, so that tens of thousands are not made just to be counted or compared."""

from typing import Any

from django.db.models import FloatField, Func


class SecondsOf(Func):
    """An instant as seconds since 1970, with their fraction. Lengths are differences of two: infinite instants of
    PostgreSQL cannot be subtracted, and what Django has for it on SQLite calls Python."""

    output_field = FloatField(null=True)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Whole seconds, and the digits behind them: SQLite has no more than milliseconds of its own."""
        whole = "round((julianday(substr(%(expressions)s, 1, 19)) - 2440587.5) * 86400.0)"
        shape = f"({whole} + substr(%(expressions)s, 20))"
        sql, params = self.as_sql(compiler, connection, template=shape, **context)
        return sql, (*params, *params)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Seconds of the epoch, which an infinite instant has, too."""
        return self.as_sql(compiler, connection, template="(EXTRACT(EPOCH FROM %(expressions)s)::float8)", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Microseconds, whatever the time zone of the session."""
        shape = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %(expressions)s) / 1e6)"
        return self.as_sql(compiler, connection, template=shape, **context)
