import scheduler.models.fields
import scheduler.models.names
from django.db import migrations, models
from scheduler.migrations._collation import told_apart_by_case
from scheduler.migrations._label import label

NAMES = {'RunKey': ('key',)}


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0012_day_totals'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job_id', models.BigIntegerField(verbose_name='key of the job')),
                ('key', scheduler.models.names.NameField(max_length=255, verbose_name='key')),
                ('scheduled_for', scheduler.models.fields.InstantField(verbose_name='slot')),
            ],
            options={
                'verbose_name': 'key of a task',
                'verbose_name_plural': 'keys of tasks',
                'default_permissions': (),
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['scheduled_for'], name='scheduler_run_key_at')],
                'constraints': [models.UniqueConstraint(fields=('job_id', 'key'), name='scheduler_run_key_once')],
            },
        ),
        told_apart_by_case(**NAMES),
    ]
