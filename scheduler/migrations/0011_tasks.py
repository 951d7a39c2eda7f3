from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0010_instance_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='runlog',
            name='error_class',
            field=models.CharField(blank=True, db_default='', default='', max_length=255, verbose_name='class of the error'),
        ),
        migrations.AddField(
            model_name='runlog',
            name='priority',
            field=models.SmallIntegerField(null=True, verbose_name='priority'),
        ),
        migrations.AddField(
            model_name='runlog',
            name='return_value',
            field=models.JSONField(blank=True, null=True, verbose_name='return value'),
        ),
        migrations.AlterField(
            model_name='runlog',
            name='trigger',
            field=models.CharField(choices=[('schedule', 'schedule'), ('catch_up', 'catch-up'), ('retry', 'retry'), ('manual', 'manual'), ('backfill', 'backfill'), ('dependency', 'dependency'), ('activity', 'activity'), ('task', 'task')], default='schedule', max_length=10, verbose_name='trigger'),
        ),
        migrations.AddIndex(
            model_name='runlog',
            index=models.Index(fields=['-priority', 'due_at'], name='scheduler_run_open_task'),
        ),
    ]
