from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0013_run_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='workers',
            field=models.JSONField(db_default={}, default=dict, verbose_name='workers'),
        ),
    ]
