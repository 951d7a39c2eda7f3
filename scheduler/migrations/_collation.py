"""MySQL and MariaDB compare text without regard to case, and Python does not: two names that differ in case only would
be two for the one and one for the other. A migration that alters one of these columns must set its collation again.
"""

from typing import Any

from django.db import migrations

from scheduler.migrations._label import label

CHARACTERS = """
    SELECT character_set_name, column_type FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s
"""


def told_apart_by_case(**columns: tuple[str, ...]) -> migrations.RunPython:
    """Return the operation that gives columns of models, by the names of those, a binary collation on MySQL."""

    def collate(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor != "mysql":
            return
        quote = schema_editor.quote_name
        for model, names in columns.items():
            table = apps.get_model(label(), model)._meta.db_table
            changes = ", ".join(f"MODIFY {quote(name)} {binary(schema_editor, table, name)} NOT NULL" for name in names)
            schema_editor.execute(f"ALTER TABLE {quote(table)} {changes}")

    return migrations.RunPython(collate, migrations.RunPython.noop, atomic=False)


def binary(schema_editor: Any, table: str, column: str) -> str:
    """Return the type of a column with the binary collation of the character set that it has."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(CHARACTERS, [table, column])
        charset, kind = cursor.fetchone()
    return f"{kind} CHARACTER SET {charset} COLLATE {charset}_bin"
