"""Forms of the account pages. Lengths are checked before any hash is computed."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.validators import MaxLengthValidator
from django.forms.utils import flatatt
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from queue_app.conf import site_time_zone
from queue_app.templatetags.frame import OWN_NAMES
from queue_app.views.frame import ZONES

NAME_LIMIT, PASSWORD_LIMIT = 150, 4096
ZONE_CHOICES = tuple((name, name.replace("_", " ")) for name in sorted(ZONES))


def _limit(field: forms.Field, length: int, message: Any) -> None:
    """Refuse longer text in the field itself, which is before the form compares any password."""
    field.validators.append(MaxLengthValidator(length, message))


class SignInForm(AuthenticationForm):
    """Name and password. The same sentence answers an unknown name, a wrong password and a person who left."""

    error_messages = {
        "invalid_login": _("This name and password do not match. Upper and lower case matter."),
        "inactive": _("This name and password do not match. Upper and lower case matter."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("Name")
        _limit(self.fields["username"], NAME_LIMIT, _("A name has at most 150 characters."))
        _limit(self.fields["password"], PASSWORD_LIMIT, _("A password has at most 4096 characters."))


class NewPasswordForm(PasswordChangeForm):
    """Old and new password. The old one is proved through the throttled sign-in, so it cannot be guessed here either."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        for field in self.fields.values():
            _limit(field, PASSWORD_LIMIT, _("A password has at most 4096 characters."))

    def clean_old_password(self) -> str:
        """The old password, if it is this person's."""
        old = str(self.cleaned_data["old_password"])
        if authenticate(self.request, username=self.user.get_username(), password=old) != self.user:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return old


def zone_choices() -> list[tuple[str, str]]:
    """The site's zone first, then every zone that has a place, and UTC."""
    site = _("The site's zone: %(zone)s") % {"zone": site_time_zone()}
    return [("", str(site)), *ZONE_CHOICES]


class LongSelect(forms.Select):
    """A select with hundreds of options in one piece: Django's own renders a template for each of them."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:  # noqa: ARG002
        """The element as HTML."""
        shown = flatatt(self.build_attrs(self.attrs, {**(attrs or {}), "name": name}))
        chosen = "" if value is None else str(value)
        options = ((key, " selected" if key == chosen else "", words) for key, words in self.choices)
        return format_html(
            "<select{}>{}</select>", shown, format_html_join("", '<option value="{}"{}>{}</option>', options)
        )


class PreferenceForm(forms.Form):
    """A person's own settings."""

    LANGUAGES = tuple(OWN_NAMES.items())

    language = forms.ChoiceField(
        label=_("Language"), required=False, choices=[("", _("As the browser asks")), *LANGUAGES]
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=zone_choices,
        widget=LongSelect,
        help_text=_("All times on all pages are shown in this zone."),
    )
    theme = forms.ChoiceField(
        label=_("Colours"),
        choices=[("auto", _("As the system")), ("light", _("Light")), ("dark", _("Dark"))],
    )
    single_keys = forms.BooleanField(
        label=_("Single-key shortcuts: ? / j k x, and g followed by a letter"),
        required=False,
        help_text=_("Switch this off if a speech or input program types letters by itself."),
    )

    @staticmethod
    def values_of(request: HttpRequest) -> dict[str, Any]:
        """What stands in the form at first: the person's settings as they are."""
        now = request.preference  # type: ignore[attr-defined]
        return {name: getattr(now, name) for name in ("language", "time_zone", "theme", "single_keys")}
