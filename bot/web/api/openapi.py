"""OpenAPI 3.1 document of the API, made from its operations and models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.web.api.models import MAX_CHANNEL_CHARS, AskRequest, Problem, SearchRequest
from bot.web.api.problems import DETAILS, PROBLEM_JSON

Json = dict[str, Any]
JSON = "application/json"
_REF = "#/components/schemas/{model}"
# Parameter in a path: {name:pattern}.
_IN_PATH = re.compile(r"\{(\w+)(?::[^{}]*(?:\{\d+(?:,\d+)?\}[^{}]*)*)?\}")
# Schema of each parameter that a path may have.
PATH_PARAMETERS: Mapping[str, Json] = {
    "document": {"type": "string", "format": "uuid"},
    "citation": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
}
CHANNEL_PARAMETER: Json = {
    "name": "channel",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "maxLength": MAX_CHANNEL_CHARS},
}
# Problems that every operation may have.
COMMON_PROBLEMS = (401, 404, 500, 503)


@dataclass(frozen=True, slots=True)
class Operation:
    """Route of the API with its description."""

    id: str
    method: str
    # With patterns of aiohttp.
    path: str
    summary: str
    body: type[BaseModel] | None = None
    # True if the body is a form with a file.
    has_file: bool = False
    # True for the query parameter ``channel``.
    has_channel: bool = False
    status: int = 200
    # Media type -> its model; None: a stream or a picture. Empty: no body.
    replies: Mapping[str, type[BaseModel] | None] = field(default_factory=dict)
    problems: Sequence[int] = ()


def openapi_document(operations: Sequence[Operation], server: str, question_chars: int) -> Json:
    """Return the document; ``server``: URL under which the paths lie."""
    models = {
        one: None
        for operation in operations
        for one in (operation.body, *operation.replies.values(), Problem)
        if one is not None
    }
    _, schemas = models_json_schema(
        [(one, "validation" if one.__name__.endswith("Request") else "serialization") for one in models],
        ref_template=_REF,
    )
    defined: Json = schemas["$defs"]
    for model, name in ((AskRequest, "question"), (SearchRequest, "query")):
        defined[model.__name__]["properties"][name]["maxLength"] = question_chars
    paths: dict[str, Json] = {}
    for one in operations:
        paths.setdefault(_IN_PATH.sub(r"{\1}", one.path), {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Footnote",
            "version": "1",
            "description": "Answers from PDFs, each with a signed link to the marked page.",
            "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": defined,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Created by `footnote tokens create`.",
                }
            },
        },
    }


def _operation(one: Operation) -> Json:
    described: Json = {"operationId": one.id, "summary": one.summary}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name]}
        for name in _IN_PATH.findall(one.path)
    ]
    if one.has_channel:
        parameters.append(CHANNEL_PARAMETER)
    if parameters:
        described["parameters"] = parameters
    if one.body is not None:
        content = {JSON: {"schema": _reference(one.body)}}
        described["requestBody"] = {"required": True, "content": content}
    if one.has_file:
        form = {
            "type": "object",
            "required": ["file"],
            "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}},
        }
        content = {"multipart/form-data": {"schema": form}}
        described["requestBody"] = {"required": True, "content": content}
    described["responses"] = dict(_responses(one))
    return described


def _responses(one: Operation) -> Mapping[str, Json]:
    good: Json = {"description": HTTPStatus(one.status).phrase}
    if one.replies:
        good["content"] = {
            media: {"schema": _reference(model)} if model else {} for media, model in one.replies.items()
        }
    problem = {PROBLEM_JSON: {"schema": _reference(Problem)}}
    refused = sorted({*COMMON_PROBLEMS, *one.problems})
    return {str(one.status): good} | {
        str(status): {"description": DETAILS[status], "content": problem} for status in refused
    }


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": _REF.format(model=model.__name__)}
