"""Placeholders: the Django templates in keyword arguments (`render_kwargs=True`), and what of them is left.

Only that is left which cannot make much out of little: each user who may edit a job may write them, and they are
rendered in a process that serves the web.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from django.template import Context, Engine, Library, Template, TemplateSyntaxError
from django.template.base import FilterExpression, Lexer, NodeList, Parser, Variable, VariableDoesNotExist

from scheduler.arguments import did_you_mean
from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown

NAMES = (
    "date", "time", "now", "scheduled_for", "last_run", "last_result", "job", "scheduledFor", "lastRun", "lastResult",
)  # fmt: skip
"""What a template may name; the last ones are other spellings."""

LONGEST = 64 * 1024
"""Characters of all arguments of a run together, before and after they are rendered."""
MOST_TAGS, LONGEST_TAG = 1000, 1000
"""Placeholders and tags of one text, and characters of one: Django's parser takes the square of what it reads."""
OPENING = re.compile(r"\{[{%#]")
CLOSING = {"{{": "}}", "{%": "%}", "{#": "#}"}
TAGS = ("comment", "if", "templatetag", "verbatim")
FILTERS = (
    "add", "capfirst", "cut", "date", "default", "default_if_none", "divisibleby", "first", "last", "length", "lower",
    "pluralize", "slice", "slugify", "time", "timesince", "timeuntil", "title", "truncatechars", "truncatewords",
    "upper", "urlencode", "yesno",
)  # fmt: skip
"""Each makes a text that is at most a few times as long as its value. Left out are those that pad (`ljust`), multiply
(`join`, `addslashes`, loops and names of one's own, by which a text doubles at each step), or tell what is none of a
job's business (`debug`, `pprint`)."""


class KwargsTemplate(Template):
    """A template that knows its placeholders; raises TemplateSyntaxError for what is left out."""

    expressions: list[FilterExpression]

    def __init__(self, source: str) -> None:
        super().__init__(source, engine=_engine())

    def compile_nodelist(self) -> NodeList:
        """Parse the source with the tags and filters that are left."""
        _check_tags(self.source)
        parser = _Parser(Lexer(self.source).tokenize(), {}, [_library()], self.origin)
        self.expressions = parser.expressions
        try:
            return parser.parse()
        except RecursionError:
            raise TemplateSyntaxError("its tags are nested too deeply.") from None


class _Parser(Parser):
    """A parser that remembers every expression, also those in branches that are not taken."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.expressions: list[FilterExpression] = []

    def compile_filter(self, token: str) -> FilterExpression:
        """As Django's."""
        self.expressions.append(found := super().compile_filter(token))
        return found


def _check_tags(source: str) -> None:
    """Raise TemplateSyntaxError for what Django takes long to read: for each tag that is not closed, the whole line."""
    number = 0
    for line in source.split("\n"):  # a tag ends on its line
        at = 0
        while opening := OPENING.search(line, at):
            closing = CLOSING[opening[0]]
            end = line.find(closing, opening.end())
            if end < 0:
                begun = shown(line[opening.start() :], 30)
                raise TemplateSyntaxError(f"{begun} is not closed by {closing} on its line.")
            number, at = number + 1, end + 2
            if number > MOST_TAGS:
                raise TemplateSyntaxError(f"it has more than {MOST_TAGS} of them.")
            if opening[0] != "{#" and end - opening.end() > LONGEST_TAG:
                raise TemplateSyntaxError(f"{shown(opening[0])} holds more than {LONGEST_TAG} characters.")


@cache
def _library() -> Library:
    from django.template import defaultfilters, defaulttags

    found = Library()
    found.tags = {name: defaulttags.register.tags[name] for name in TAGS}
    found.filters = {name: defaultfilters.register.filters[name] for name in FILTERS}
    return found


@cache
def _engine() -> Engine:
    """An engine that can load no other template, and does not escape: the values are arguments, not HTML."""
    return Engine(autoescape=False, dirs=[], app_dirs=False, loaders=[])


def refuse_templates(kwargs: Mapping[str, Any]) -> None:
    """Raise InvalidOption for keyword arguments that no run could render, naming the first.

    What parts a placeholder has is known when it runs.
    """
    unknown = Context(dict.fromkeys(NAMES), autoescape=False)
    length = 0
    try:
        for name, value in kwargs.items():
            for source in _texts(value):
                length += len(source)
                if length > LONGEST:
                    raise InvalidOption(f"with {name!r}, kwargs are longer than {LONGEST} characters; shorten them.")
                _refuse_template(name, source, unknown)
    except InvalidOption as error:
        error.field = "kwargs"
        raise


def _refuse_template(name: str, source: str, context: Context) -> None:
    if "{" not in source:
        return
    try:
        template = KwargsTemplate(source)
    except TemplateSyntaxError as error:
        raise InvalidOption(f"the placeholders of {name!r} in kwargs cannot be filled in: {error}") from error
    for expression in template.expressions:
        check_placeholders(expression, context)


def _texts(value: Any) -> Iterator[str]:
    """Return every string among the values of an argument; keys are not rendered."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def check_placeholders(expression: FilterExpression, context: Context) -> None:
    """Raise InvalidOption for a name that there is none of, or a part of one; what is None has no parts yet."""
    for variable in (expression.var, *(value for _, args in expression.filters for _, value in args)):
        if not isinstance(variable, Variable) or not variable.lookups:
            continue
        name = variable.lookups[0]
        if name not in context and name not in ("True", "False", "None"):
            known = sorted(map(str, context.flatten().keys() - {"True", "False", "None"}))
            words = f"kwargs name the unknown placeholder {str(variable)!r}.{did_you_mean(name, known)}"
            raise InvalidOption(f"{words} There are {', '.join(known)}.")
        try:
            if context.get(name) is not None:
                variable.resolve(context)
        except VariableDoesNotExist:
            words = f"kwargs name the unknown placeholder {str(variable)!r}: {name} has no such part."
            raise InvalidOption(words) from None
