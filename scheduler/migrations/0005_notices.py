import django.db.models.deletion
import scheduler.models.fields
from django.db import migrations, models
from scheduler.migrations._collation import told_apart_by_case
from scheduler.migrations._label import label

NAMES = {'Notice': ('name',), 'NoticeDelivery': ('channel',), 'NoticeChannel': ('name',)}


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0004_idempotency_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='NoticeChannel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('holder', models.UUIDField(null=True, verbose_name='in use by')),
                ('held_until', scheduler.models.fields.InstantField(null=True, verbose_name='in use until')),
                ('next_at', scheduler.models.fields.InstantField(null=True, verbose_name='not before')),
                ('used_at', scheduler.models.fields.InstantField(null=True, verbose_name='used')),
                ('failures', models.PositiveIntegerField(default=0, verbose_name='failures in a row')),
                ('last_ok_at', scheduler.models.fields.InstantField(null=True, verbose_name='last success')),
                ('last_error_at', scheduler.models.fields.InstantField(null=True, verbose_name='last failure')),
                ('last_error', models.CharField(blank=True, default='', max_length=300, verbose_name='last error')),
                ('recent', models.JSONField(blank=True, default=list, verbose_name='recently sent')),
            ],
            options={
                'verbose_name': 'notification channel',
                'verbose_name_plural': 'notification channels',
                'default_permissions': (),
                'base_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='jobwatch',
            name='losses',
            field=models.PositiveBigIntegerField(db_default=0, default=0, verbose_name='losses told'),
        ),
        migrations.AddField(
            model_name='jobwatch',
            name='misses',
            field=models.PositiveBigIntegerField(db_default=0, default=0, verbose_name='misses told'),
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=100, unique=True, verbose_name='key')),
                ('open_for', models.CharField(max_length=100, null=True, unique=True, verbose_name='open for')),
                ('kind', models.CharField(choices=[('broken', 'broken'), ('failed', 'failed'), ('stuck', 'stuck'), ('missed', 'missed'), ('lost', 'lost'), ('not_fresh', 'success overdue'), ('deadline_missed', 'deadline missed'), ('slower', 'slower than usual'), ('recovered', 'recovered'), ('succeeded_again', 'succeeded again'), ('test', 'test')], max_length=20, verbose_name='what is told')),
                ('job_id', models.PositiveBigIntegerField(default=0, verbose_name='key of the job')),
                ('name', models.CharField(max_length=255, verbose_name='name of the job')),
                ('at', scheduler.models.fields.InstantField(verbose_name='when')),
                ('closed_at', scheduler.models.fields.InstantField(null=True, verbose_name='over since')),
                ('data', models.JSONField(blank=True, default=dict, verbose_name='details')),
            ],
            options={
                'verbose_name': 'notice',
                'verbose_name_plural': 'notices',
                'ordering': ['-id'],
                'default_permissions': ('view',),
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['at'], name='scheduler_notice_at')],
            },
        ),
        migrations.CreateModel(
            name='NoticeDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(max_length=100, verbose_name='channel')),
                ('due_at', scheduler.models.fields.InstantField(null=True, verbose_name='waits since')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('sent_at', scheduler.models.fields.InstantField(null=True, verbose_name='sent')),
                ('failed_at', scheduler.models.fields.InstantField(null=True, verbose_name='given up')),
                ('error', models.CharField(blank=True, default='', max_length=300, verbose_name='error')),
                ('notice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to=f'{label()}.notice', verbose_name='notice')),
            ],
            options={
                'verbose_name': 'delivery of a notice',
                'verbose_name_plural': 'deliveries of notices',
                'ordering': ['-id'],
                'default_permissions': (),
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['due_at'], name='scheduler_notice_waits')],
                'constraints': [models.UniqueConstraint(fields=('notice', 'channel'), name='scheduler_notice_once')],
            },
        ),
        told_apart_by_case(**NAMES),
    ]
