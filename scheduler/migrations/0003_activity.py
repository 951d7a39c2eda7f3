from importlib import import_module

import django.db.models.deletion
import scheduler.models.fields
from django.db import migrations, models

names_by_case = import_module("scheduler.migrations.0002_names_by_case")

NAMES = {"Activity": ("user_key",)}


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0002_names_by_case'),
    ]

    operations = [
        migrations.CreateModel(
            name='Activity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_key', models.CharField(max_length=255, verbose_name='user')),
                ('ids', models.JSONField(default=dict, verbose_name='ids')),
                ('state', models.CharField(choices=[('pending', 'pending'), ('running', 'running'), ('done', 'done')], max_length=10, verbose_name='state')),
                ('wake_at', scheduler.models.fields.InstantField(verbose_name='to look at')),
                ('created_at', scheduler.models.fields.InstantField(verbose_name='created')),
                ('last_activity_at', scheduler.models.fields.InstantField(verbose_name='last activity')),
                ('events', models.PositiveBigIntegerField(default=1, verbose_name='activities')),
                ('taken_events', models.PositiveBigIntegerField(default=0, verbose_name='activities its run knows of')),
                ('lock_token', models.CharField(blank=True, default='', max_length=36, verbose_name='lock token')),
                ('taken_at', scheduler.models.fields.InstantField(null=True, verbose_name='taken')),
                ('slot', scheduler.models.fields.InstantField(null=True, verbose_name='slot of its run')),
                ('last_executed_at', scheduler.models.fields.InstantField(null=True, verbose_name='last execution')),
                ('failures', models.PositiveIntegerField(default=0, verbose_name='failures in a row')),
                ('failures_until', scheduler.models.fields.InstantField(null=True, verbose_name='failures count until')),
                ('version', models.PositiveBigIntegerField(default=0, verbose_name='version of the row')),
                ('job', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='activities', to='scheduler.job', verbose_name='job')),
            ],
            options={
                'verbose_name': 'activity',
                'verbose_name_plural': 'activities',
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['job', 'state', 'wake_at'], name='scheduler_activity_due')],
                'constraints': [models.UniqueConstraint(fields=('job', 'user_key'), name='scheduler_activity_user')],
            },
        ),
        names_by_case.told_apart_by_case(**NAMES),
    ]
