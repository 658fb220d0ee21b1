"""Lists the settings in force with their source and their risk, for the console.

Computed once, at the start: what files say later is not in force before the next start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic.fields import FieldInfo

from bot.loopback import is_loopback_host
from bot.operations.doctor.redaction import known_redactor
from bot.settings import SETTINGS_CLASSES, Settings
from bot.web.admin.settings_page import EffectiveSetting
from storage.settings import FootnoteSettings, load_valid, read_dotenv, read_toml

# Fields that `serve` also takes as arguments.
_ARGUMENTS = {"host", "port", "inbox"}
# A link opens its document for whoever has it.
_MANY_LINK_DAYS = 30

# Field -> why a value is risky, '' if it is not. Any unencrypted address is risky, too.
_RISKS: Mapping[str, Callable[[Any], str]] = {
    "console": lambda value: (
        "A proxy on this machine can expose the local console; only its secret protects it." if value else ""
    ),
    "link_days": lambda value: (
        "A link opens its document for whoever has it, for a long time." if value > _MANY_LINK_DAYS else ""
    ),
    "uploads": lambda value: (
        "Everybody in every channel can add documents to it." if "all" in value.split() else ""
    ),
    "teams_development": lambda value: "Messages are accepted without Teams’ signature." if value else "",
    "web_loopback": lambda value: "Web pages of this machine can be fetched." if value else "",
    "oidc_readers": lambda value: (
        "Readers see every channel, unless FOOTNOTE_OIDC_CHANNEL_READERS is set." if value else ""
    ),
    "verify": lambda value: (
        "" if value == "model" else "Sentences of the model are checked by their words only."
    ),
    "record_days": lambda value: "" if value else "Without records, Quality, Usage and gaps stay empty.",
}


def rooms_of(settings: Settings) -> Iterator[FootnoteSettings]:
    """Yield the settings of all packages; those that are loaded where they are used are read again."""
    loaded: dict[type[FootnoteSettings], FootnoteSettings] = {
        type(one): one for one in (settings.storage, settings.bot, settings.ingestion)
    }
    for room in SETTINGS_CLASSES:
        if one := loaded.get(room) or load_valid(room)[0]:
            yield one


def effective_settings(rooms: Iterable[FootnoteSettings]) -> list[EffectiveSetting]:
    """Return every setting of these classes; secrets are hidden."""
    sources = list(_sources())
    return [
        _effective(room, variable, name, sources)
        for room in rooms
        for variable, name in room.variables().items()
    ]


def _sources() -> Iterator[tuple[str, set[str]]]:
    """Yield each source, by precedence, with the variables that it sets, in upper case."""
    for source, given in (("environment", os.environ), (".env", read_dotenv())):
        yield source, {name.upper() for name, value in given.items() if value}
    yield "footnote.toml", {name.upper() for name in read_toml()}


def _effective(
    room: FootnoteSettings, variable: str, name: str, sources: list[tuple[str, set[str]]]
) -> EffectiveSetting:
    field, value = type(room).model_fields[name], getattr(room, name)
    source = next((source for source, names in sources if variable.upper() in names), "default")
    if source == "default" and value != field.get_default(call_default_factory=True):
        source = "command line" if name in _ARGUMENTS else "derived"
    shown, risk = _shown(field, value), _risk(name, value)
    return EffectiveSetting(variable, shown, source, str(field.description), risk)


def _shown(field: FieldInfo, value: object) -> str:
    """Return a value as it is written in ``.env``; '' if unset."""
    if value is None:
        return ""
    if any(kind in str(field.annotation) for kind in ("Secret", "Account")):
        return "set" if value else ""
    return known_redactor().clean(str(value).lower() if isinstance(value, bool) else str(value))


def _risk(name: str, value: Any) -> str:
    if value is not None and name in _RISKS:
        return _RISKS[name](value)
    if isinstance(value, str) and value.startswith("http://"):
        if not is_loopback_host(urlsplit(value).hostname):
            return "Unencrypted: whoever is on the way can read it. Use https://."
    return ""
