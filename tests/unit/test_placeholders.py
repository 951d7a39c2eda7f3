import pytest
from django.template import TemplateSyntaxError

from scheduler.exceptions import InvalidOption
from scheduler.placeholders import LONGEST, KwargsTemplate, refuse_templates
from tests.costs import quick


@pytest.mark.parametrize(
    "source",
    [
        "{{ date|date:'Y-m-d' }}",
        "{% if last_run %}{{ last_run.year }}{% endif %}",
        "{{ last_run.nothing }}",
        "{ plain }",
    ],
)
def test_what_a_run_can_render_is_taken(source):
    refuse_templates({"text": source, "deep": [{"er": source}], "number": 7})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{{ job|ljust:'1500000000' }}", "ljust"),
        ("{% debug %}", "debug"),
        ("{% if job %}", "Unclosed tag"),
        ("{{ joob }}", "joob"),
        ("{" + "x" * LONGEST, "longer than"),
    ],
)
def test_what_no_run_could_render_is_refused_with_the_name_of_the_argument(source, why):
    with pytest.raises(InvalidOption, match=why) as raised:
        refuse_templates({"fine": "x", "text": [{"deep": source}]})
    assert "'text'" in str(raised.value) or "joob" in str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{" * 32_000, "{%" * 32_000, "{#" * 32_000, "{{{%{#" * 10_000, "{{}" * 21_000, "{{ job }}" * 1001,
        "{{ " + '\\"' * 32_000 + " }}", "{% if " + "'\\" * 32_000 + " %}", "{% if job %}" * 900 + "{% endif %}" * 900,
    ],
    ids=lambda source: source[:12],
)  # fmt: skip
def test_a_text_that_takes_long_to_parse_is_refused_at_once_at_save_and_at_its_run(source):
    with quick(1):  # some took more than 10 s
        with pytest.raises(InvalidOption, match="'text' in kwargs") as refused:
            refuse_templates({"text": source[:LONGEST]})
        with pytest.raises(TemplateSyntaxError):
            KwargsTemplate(source[:LONGEST])
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("source", ["on {{ date", "{{ date\n}}", "{% if job %}a{% endif", "{# note"])
def test_a_placeholder_that_is_not_closed_is_refused(source):
    with pytest.raises(InvalidOption, match="is not closed by"):
        refuse_templates({"text": source})


def test_a_long_note_and_many_lines_are_taken():
    refuse_templates({"text": "{# " + "note " * 1000 + "#}" + "{ }\n" * 5000 + "{{ date }}\n" * 100})


def test_all_texts_together_are_bounded_at_save_as_they_are_at_a_run():
    half = "{{ job }}" + "x" * (LONGEST // 2)
    refuse_templates({"one": half})
    with pytest.raises(InvalidOption, match=f"with 'other', kwargs are longer than {LONGEST}"):
        refuse_templates({"one": half, "other": [half]})
