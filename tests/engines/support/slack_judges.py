"""Validators of Slack payloads: schemas from Slack's own types, slack_sdk's models, and our own rules.

The types (npm, MIT) know every argument, block and element, but no lengths. The models know most lengths. Our
rules add counts, empty texts, URLs and duplicate ids.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from engines import cache as engine_cache
from engines import run_fetching
from engines.support.json_schemas import validator
from engines.support.npm import install

if TYPE_CHECKING:
    import jsonschema
    import jsonschema.protocols

Json = Mapping[str, Any]

_PROJECT = Path(__file__).with_name("slack_schemas")
# Method name of a reply to a click or a command.
RESPONSE_URL = "response_url"
# Arguments of such a reply in addition to those of a message.
_REPLY = {"response_type", "replace_original", "delete_original"}
# Called without arguments, or by tests only.
_WITHOUT_SCHEMA = {"auth.test", "apps.connections.open", "conversations.open"}
# Arguments missing from Slack's types. Previews are refused in updates as in posts, wherever Slack heeds
# that. The alternative text of an image is ``alt_txt`` in Slack's reference and in slack_sdk.
_UNTYPED = {
    "chat.update": {"unfurl_links", "unfurl_media"},
    "files.getUploadURLExternal": {"alt_txt"},
}

# For all blocks together: Slack was seen to refuse a message at about 13,200.
MAX_MESSAGE_CHARS = 13_000
MAX_BLOCKS, MAX_VIEW_BLOCKS, MAX_TEXT, MAX_ALT_TEXT, MAX_URL = 50, 100, 40_000, 1000, 3000
MAX_PROMPTS = 4
# Maximum characters by the type of the containing object and its key.
_CHARS = {
    ("plain_text", "text"): 3000,
    ("mrkdwn", "text"): 3000,
    ("section", "text"): 3000,
    ("header", "text"): 150,
    ("image", "title"): 2000,
    ("image", "alt_text"): 2000,
    ("button", "text"): 75,
    ("button", "value"): 2000,
    ("button", "accessibility_label"): 75,
    ("icon_button", "value"): 2000,
    ("home", "private_metadata"): 3000,
    ("home", "callback_id"): 255,
    ("markdown", "text"): 12_000,
    ("task_update", "title"): 256,
}
# Maximum number of items by the same; the minimum is one.
_COUNTS = {
    ("actions", "elements"): 25,
    ("context", "elements"): 10,
    ("context_actions", "elements"): 5,
    ("section", "fields"): 10,
    ("overflow", "options"): 5,
    ("static_select", "options"): 100,
    ("table", "rows"): 100,
}
_OPTION_CHARS = {"text": 75, "value": 150, "description": 75}
_ADDRESSES = ("url", "image_url", "thumb_url", "title_url", "icon_url", "video_url")


def _schemas() -> Path:
    """Return the path of the schemas, which depends on the hash of their sources."""
    parts = sorted(path for path in _PROJECT.iterdir() if path.is_file())
    digest = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()
    return engine_cache() / f"slack-schemas-{digest[:12]}.json"


def is_fetched() -> bool:
    """True if the schemas were generated."""
    return _schemas().exists()


def fetch() -> None:
    """Generate the schemas; do nothing if they exist.

    Raises:
        FetchError: npm is missing, or Slack's types could not be fetched or converted.
    """
    if is_fetched():
        return
    with tempfile.TemporaryDirectory(dir=engine_cache()) as scratch:
        project = Path(shutil.copytree(_PROJECT, Path(scratch) / "project"))
        install(project)
        made = project / "schemas.json"
        command = ["node", "make_schemas.mjs"]
        made.write_text(run_fetching(command, cwd=project))
        made.replace(_schemas())


def faults_of(method: str, payload: Json) -> list[str]:
    """Return the faults of a method's arguments, or of the body of a ``RESPONSE_URL``.

    Without the schemas only the other two validators run: tests that need them are marked with the engine.
    """
    schema = schema_faults(method, payload) if is_fetched() else []
    return [*schema, *model_faults(payload), *rule_faults(payload)]


def message_faults(blocks: Sequence[Json], text: str = "Hello") -> list[str]:
    """Return the faults of a message with these blocks."""
    return faults_of("chat.postMessage", {"channel": "C1", "text": text, "blocks": list(blocks)})


def schema_faults(method: str, payload: Json) -> list[str]:
    """Return violations of Slack's types; among alternatives, those of the closest one."""
    if method == RESPONSE_URL:
        if payload.get("delete_original") and "text" not in payload:
            return []
        method, payload = "chat.postMessage", {"channel": "C1"} | _without(payload, _REPLY)
    if method in _WITHOUT_SCHEMA:
        return []
    if (judge := _validators().get(method)) is None:
        return [f"{method}: make_schemas.mjs does not name it"]
    typed = _typed(judge.schema, _without(payload, _UNTYPED.get(method, set())))
    errors = [leaf for error in judge.iter_errors(typed) for leaf in _leaves(error)]
    if not errors:
        return []
    nearest = max(errors, key=lambda one: (len(one.absolute_path), one.validator != "const"))
    return [f"{method} {nearest.json_path}: {nearest.message[:300]}"]


def model_faults(payload: Json) -> list[str]:
    """Return violations of slack_sdk's models; blocks unknown to them are left to the schema."""
    faults = []
    try:
        if view := payload.get("view"):
            View(**view).validate_json()
        for _, blocks, _ in _block_lists(payload):
            for parsed in filter(None, Block.parse_all(blocks)):
                parsed.to_dict()  # validates nested objects, too
    except (SlackObjectFormationError, TypeError, ValueError) as error:
        faults.append(f"slack_sdk: {error}")
    return faults


def rule_faults(payload: Json) -> list[str]:
    """Return violations of our own rules."""
    inner = (fault for one in _objects(payload) for fault in _object_faults(one))
    return [*_block_faults(payload), *_argument_faults(payload), *inner]


def _block_faults(payload: Json) -> Iterator[str]:
    for place, blocks, most in _block_lists(payload):
        if len(blocks) > most:
            yield f"{place}: {len(blocks)} blocks"
        if most == MAX_BLOCKS and (length := len(json.dumps(blocks, ensure_ascii=False))) > MAX_MESSAGE_CHARS:
            yield f"{place}: {length} characters"
        yield from _twice("block_id", blocks)
        for block in blocks:
            yield from _twice("action_id", _objects(block))


def _argument_faults(payload: Json) -> Iterator[str]:
    if "text" in payload and not (str(payload["text"]).strip() or payload.get("blocks")):
        yield "a message without words and blocks"
    for name, limit in (("text", MAX_TEXT), ("alt_txt", MAX_ALT_TEXT)):
        if len(str(payload.get(name) or "")) > limit:
            yield f"{name}: more than {limit} characters"
    if len(payload.get("prompts") or ()) > MAX_PROMPTS:
        yield f"prompts: more than {MAX_PROMPTS}"


def _object_faults(one: Json) -> Iterator[str]:
    kind = one.get("type")
    for key, value in one.items():
        place = f"{kind or 'object'}.{key}"
        length = _length(value)
        most = _OPTION_CHARS.get(key) if _is_option(one) else _CHARS.get((str(kind), key))
        if most is not None and length is not None and not 1 <= length <= most:
            yield f"{place}: {length} characters"
        if (count := _COUNTS.get((str(kind), key))) and not 1 <= len(value) <= count:
            yield f"{place}: {len(value)} items"
        if key == "fields" and any((_length(field) or 0) > 2000 for field in value):
            yield f"{place}: a field of more than 2000 characters"
        if key in _ADDRESSES and not _is_address(value):
            yield f"{place}: no address of at most {MAX_URL} characters"
        if key in ("block_id", "action_id") and not 1 <= len(str(value)) <= 255:
            yield f"{place}: {len(str(value))} characters"
    if kind in ("plain_text", "mrkdwn", "markdown") and not str(one.get("text", "")).strip():
        yield f"{kind}: no text"


def _block_lists(payload: Json) -> Iterator[tuple[str, Sequence[Json], int]]:
    """Yield (path, blocks, maximum) of a message, a view, chunks of a stream, and previews."""
    yield "blocks", payload.get("blocks") or (), MAX_BLOCKS
    yield "view", (payload.get("view") or {}).get("blocks") or (), MAX_VIEW_BLOCKS
    for chunk in payload.get("chunks") or ():
        yield "chunk", chunk.get("blocks") or (), MAX_BLOCKS
    for url, preview in (payload.get("unfurls") or {}).items():
        yield url, preview.get("blocks") or (), MAX_BLOCKS


def _objects(value: Any) -> Iterator[Json]:
    """Yield every object of a payload except metadata, whose content is ours."""
    if isinstance(value, Mapping):
        yield value
        for key, child in value.items():
            if key != "metadata":
                yield from _objects(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _objects(child)


def _is_option(one: Json) -> bool:
    return "type" not in one and {"text", "value"} <= one.keys()


def _leaves(error: jsonschema.ValidationError) -> Iterator[jsonschema.ValidationError]:
    if not error.context:
        yield error
    for one in error.context or ():
        yield from _leaves(one)


def _length(value: Any) -> int | None:
    """Return the length of a text or text object, or None for others."""
    text = value.get("text") if isinstance(value, Mapping) else value
    return len(text) if isinstance(text, str) else None


def _is_address(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > MAX_URL or any(sign.isspace() for sign in value):
        return False
    parts = urlsplit(value)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _twice(name: str, objects: Iterable[Json]) -> Iterator[str]:
    ids = Counter(str(one[name]) for one in objects if one.get(name))
    yield from (f"{name} {one} occurs twice" for one, count in ids.items() if count > 1)


def _without(payload: Json, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in names}


def _typed(schema: Json, payload: Json) -> dict[str, Any]:
    """Return form-encoded arguments converted to numbers and booleans as the schema requires."""
    kinds: dict[str, Any] = {}
    for one in schema.get("anyOf", [schema]):
        kinds |= {name: kind.get("type") for name, kind in one.get("properties", {}).items()}
    return {name: _read(value, kinds.get(name)) for name, value in payload.items() if value is not None}


def _read(value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or kind not in ("number", "boolean", "array", "object"):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        return value
    return bool(read) if kind == "boolean" and read in (0, 1) else read


@cache
def _validators() -> dict[str, jsonschema.protocols.Validator]:
    schemas = json.loads(_schemas().read_text(encoding="utf-8"))
    return {method: validator(schema, draft=7) for method, schema in schemas.items()}
