import django.db.models.deletion
import scheduler.models.fields
from django.db import migrations, models
from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0002_api_tokens'),
    ]

    operations = [
        migrations.CreateModel(
            name='JobWatch',
            fields=[
                ('job', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='watch', serialize=False, to=f'{label()}.job', verbose_name='job')),
                ('slow_after', models.DurationField(null=True, verbose_name='slow after')),
                ('measured_at', scheduler.models.fields.InstantField(null=True, verbose_name='measured')),
            ],
            options={
                'verbose_name': 'watch of a job',
                'verbose_name_plural': 'watches of jobs',
                'default_permissions': (),
                'base_manager_name': 'objects',
            },
        ),
    ]
