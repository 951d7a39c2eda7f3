from django.db import migrations, models
from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0005_notices'),
    ]

    operations = [
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('pk', models.CompositePrimaryKey('job_id', 'status', 'cause', 'took_within', 'late_within', blank=True, editable=False, primary_key=True, serialize=False)),
                ('job_id', models.BigIntegerField(verbose_name='job')),
                ('status', models.CharField(max_length=10, verbose_name='status')),
                ('cause', models.CharField(blank=True, default='', max_length=20, verbose_name='cause')),
                ('took_within', models.PositiveIntegerField(default=0, verbose_name='bound of the duration, in milliseconds')),
                ('late_within', models.PositiveIntegerField(default=0, verbose_name='bound of the start delay, in milliseconds')),
                ('count', models.PositiveBigIntegerField(default=0, verbose_name='how many')),
                ('took', models.PositiveBigIntegerField(default=0, verbose_name='sum of the durations, in microseconds')),
                ('late', models.PositiveBigIntegerField(default=0, verbose_name='sum of the start delays, in microseconds')),
            ],
            options={
                'verbose_name': 'tally',
                'verbose_name_plural': 'tallies',
                'default_permissions': (),
                'base_manager_name': 'objects',
            },
        ),
    ]
