from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0007_job_expects'),
    ]

    operations = [
        migrations.AddField(
            model_name='runlog',
            name='checkpoint',
            field=models.JSONField(blank=True, editable=False, null=True, verbose_name='state saved so far'),
        ),
    ]
