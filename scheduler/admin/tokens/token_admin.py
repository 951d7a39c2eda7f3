"""Tokens in the admin: a list, a form for a new one, whose secret is shown once, and revoking."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.columns import column
from scheduler.admin.names import right_named
from scheduler.admin.page_context import actor_of, now_of, page_context
from scheduler.admin.request_values import CarefulListMixin
from scheduler.admin.served_api import served_api
from scheduler.admin.times import DASH, NOTHING, instant, relative
from scheduler.admin.tokens.token_form import OF_NONE, TokenForm
from scheduler.models import ApiToken
from scheduler.tokens.holder import users_of
from scheduler.tokens.issue import create_token, revoke_token

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[ApiToken]
else:
    _ModelAdmin = object


class ApiTokenAdminMixin(CarefulListMixin, _ModelAdmin):
    """The tokens of the REST API, where the project serves it. Superusers have all of them, others their own. Put it
    before any ModelAdmin."""

    form = TokenForm
    list_display = ("called", "state", "allows", "user", "used", "expires", "created", "maker")
    list_display_links = None
    show_full_result_count = False
    actions = ("revoke",)
    change_list_template = "admin/scheduler/apitoken/change_list.html"

    class Media:
        css = {"all": ["scheduler/admin.css"]}
        js = (Script("scheduler/admin.js", defer=True),)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, and where the API is."""
        context = {"title": gettext("API tokens"), "api": served_api(request)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form, with one button: whatever follows, the token is shown first."""
        context = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**context, **(extra_context or {})})

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """A superuser's list has all tokens, any other user's those of that user."""
        tokens = super().get_queryset(request)
        return tokens if _may_do_all(request) else tokens.filter(user_key=str(request.user.pk))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's; each row knows the moment it is shown at, and its user."""
        changelist = super().get_changelist_instance(request)
        users = users_of(list(changelist.result_list))
        for token in changelist.result_list:
            token.seen_at, token.found_user = now_of(request), users.get(token.user_key)
        return changelist

    def get_form(self, request: HttpRequest, obj: ApiToken | None = None, change: bool = False, **options: Any) -> Any:
        """The form, which is told the time and who fills it in."""
        form: Any = super().get_form(request, obj, change, **options)
        form.now, form.may_do_all = now_of(request), _may_do_all(request)
        return form

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """What may be chosen of a new one."""
        return ("name", "scope", "lasts", "whose")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Make the token; its secret waits for the answer."""
        of_none = form.cleaned_data["whose"] == OF_NONE
        token, request.scheduler_secret = create_token(  # type: ignore[attr-defined]
            obj.name,
            scope=obj.scope,
            user=None if of_none else request.user,
            expires_at=form.expires_at,
            actor=actor_of(request),
        )
        obj.pk, obj._state.adding, obj._state.db = token.pk, False, token._state.db

    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret, in this answer only: no message, and no session, keeps it."""
        context = page_context(self, request, gettext("Token “{name}”").format(name=obj.name)) | {
            "token": obj,
            "secret": request.scheduler_secret,  # type: ignore[attr-defined]
            "api": served_api(request),
            "origin": f"{request.scheme}://{request.get_host()}",
        }
        response = TemplateResponse(request, "admin/scheduler/apitoken/created.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        """Have tokens open nothing from now on."""
        revoked = [token for token in tokens if revoke_token(token)]
        for token in revoked:
            self.log_change(request, token, gettext("Revoked."))
        words = ngettext("%d token revoked.", "%d tokens revoked.", len(revoked)) % len(revoked)
        self.message_user(request, words, messages.SUCCESS)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether the user may end tokens."""
        return served_api(request) is not None and request.user.has_perm(right_named("change_apitoken"))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the index names them."""
        return served_api(request) is not None and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Whether the user may see which tokens there are."""
        return served_api(request) is not None and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether the user may make a token."""
        return served_api(request) is not None and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """A token is what it was made; another one is another token."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Only what opens nothing any more is taken off the list."""
        if served_api(request) is None or (obj is not None and obj.is_live(now_of(request))):
            return False
        return super().has_delete_permission(request, obj)

    @column(_("name"), ordering="name")
    def called(self, token: Any) -> str:
        """What calls with it."""
        return str(token.name)

    @column(_("state"))
    def state(self, token: Any) -> SafeString:
        """Whether it opens anything, and why not."""
        if token.revoked_at is not None:
            return badges.badge("quiet", "■", _("revoked"))
        if not token.is_live(token.seen_at):
            return badges.badge("quiet", "○", _("expired"))
        if token.user_key and token.found_user is None:
            return badges.badge("warn", "⚠", _("its user is gone"))
        return badges.badge("good", "✔", _("open"))

    @column(_("scope"), ordering="scope")
    def allows(self, token: Any) -> str:
        """What it may be used for."""
        return str(token.get_scope_display())

    @column(_("user"))
    def user(self, token: Any) -> Any:
        """Whose permissions it has."""
        if not token.user_key:
            return NOTHING
        return token.found_user.get_username() if token.found_user else token.user_key

    @column(_("last used"))
    def used(self, token: Any) -> SafeString:
        """When it was used last, to the minute or so."""
        return relative(token.last_used_at, token.seen_at) if token.last_used_at else NOTHING

    @column(_("expires"))
    def expires(self, token: Any) -> SafeString:
        """When it ends."""
        return instant(token.expires_at)

    @column(_("created"))
    def created(self, token: Any) -> SafeString:
        """When it was made."""
        return instant(token.created_at)

    @column(_("created by"), ordering="created_by")
    def maker(self, token: Any) -> str:
        """Who made it."""
        return token.created_by or DASH


def _may_do_all(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


@admin.register(ApiToken)
class ApiTokenAdmin(ApiTokenAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Tokens in the stock admin."""
