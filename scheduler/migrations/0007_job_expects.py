from django.db import migrations, models

from scheduler.migrations._label import label


class Migration(migrations.Migration):

    dependencies = [
        (label(), '0006_tally'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='expects',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=10, verbose_name='expectation'),
        ),
    ]
