from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0011_tasks'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayTotal',
            fields=[
                ('pk', models.CompositePrimaryKey('job_id', 'day', 'status', 'took_within', blank=True, editable=False, primary_key=True, serialize=False)),
                ('job_id', models.BigIntegerField(verbose_name='job')),
                ('day', models.DateField(verbose_name='day')),
                ('status', models.CharField(max_length=10, verbose_name='status')),
                ('took_within', models.PositiveIntegerField(default=0, verbose_name='bound of the duration, in milliseconds')),
                ('count', models.PositiveBigIntegerField(default=0, verbose_name='how many')),
                ('took', models.PositiveBigIntegerField(default=0, verbose_name='sum of the durations, in microseconds')),
            ],
            options={
                'verbose_name': 'total of a day',
                'verbose_name_plural': 'totals of days',
                'default_permissions': (),
                'base_manager_name': 'objects',
            },
        ),
    ]
