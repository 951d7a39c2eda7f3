import scheduler.models.fields
from django.db import migrations, models
from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0001_jobs_and_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='What calls with it, such as “deploy”.', max_length=100, verbose_name='name')),
                ('digest', models.CharField(editable=False, max_length=64, verbose_name='hash of the token')),
                ('scope', models.CharField(choices=[('read', 'read'), ('write', 'read and write')], default='read', max_length=10, verbose_name='scope')),
                ('user_key', models.CharField(blank=True, default='', editable=False, max_length=255, verbose_name='key of the user')),
                ('created_at', scheduler.models.fields.InstantField(editable=False, verbose_name='created')),
                ('created_by', models.CharField(blank=True, default='', editable=False, max_length=150, verbose_name='created by')),
                ('expires_at', scheduler.models.fields.InstantField(blank=True, null=True, verbose_name='expires')),
                ('revoked_at', scheduler.models.fields.InstantField(editable=False, null=True, verbose_name='revoked')),
                ('last_used_at', scheduler.models.fields.InstantField(editable=False, null=True, verbose_name='last used')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'ordering': ['-id'],
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('digest',), name='scheduler_api_token_once')],
            },
        ),
    ]
