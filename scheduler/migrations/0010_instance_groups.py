from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0009_run_checkpoint'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='groups',
            field=models.JSONField(db_default={}, default=dict, verbose_name='groups it takes'),
        ),
    ]
