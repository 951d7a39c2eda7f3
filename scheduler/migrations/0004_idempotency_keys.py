import scheduler.models.fields
from django.db import migrations, models
from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0003_watch_jobs'),
    ]

    operations = [
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, verbose_name='hash of the key')),
                ('request', models.CharField(max_length=64, verbose_name='hash of the request')),
                ('made', models.BigIntegerField(verbose_name='id of what it made')),
                ('created', models.BooleanField(default=True, verbose_name='whether that is new')),
                ('at', scheduler.models.fields.InstantField(verbose_name='when')),
            ],
            options={
                'verbose_name': 'idempotency key',
                'verbose_name_plural': 'idempotency keys',
                'default_permissions': (),
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['at'], name='scheduler_idempotency_at')],
                'constraints': [models.UniqueConstraint(fields=('digest',), name='scheduler_idempotency_once')],
            },
        ),
    ]
