"""JSON schemas of Kubernetes objects, a file per kind, as kubeconform expects.

Generated from the OpenAPI document in Kubernetes' module, and from the Prometheus operator's resource
definition. Unknown fields are refused, as by ``kubectl apply --server-side``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

PREFIX = "#/definitions/"
# kubeconform's file name of a kind, such as deployment-apps-v1.json.
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
NUMBERS = {"type": ["string", "number"]}
# Strings in the document that the server also accepts as numbers.
SCALARS: Mapping[str, Json] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": NUMBERS,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
}


def write_schemas(openapi: Json, kinds: Iterable[tuple[str, str]], folder: Path) -> None:
    """Write a self-contained schema file for each (apiVersion, kind).

    Raises:
        KeyError: the document lacks a kind.
    """
    definitions: Json = openapi["definitions"]
    names = {
        (_api_version(one), one["kind"]): name
        for name, definition in definitions.items()
        for one in definition.get("x-kubernetes-group-version-kind", ())
    }
    for api_version, kind in kinds:
        name = names[api_version, kind]
        used = {one: _strict(SCALARS.get(one, definitions[one])) for one in _reached(name, definitions)}
        schema = {"$ref": PREFIX + name, "definitions": used}
        (folder / _file_name(api_version, kind)).write_text(json.dumps(schema))


def write_custom_schema(definition: Path, folder: Path) -> None:
    """Write the schema file of a CustomResourceDefinition."""
    resource = yaml.safe_load(definition.read_text(encoding="utf-8"))["spec"]
    (version,) = resource["versions"]
    api_version = f"{resource['group']}/{version['name']}"
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = True
    (folder / _file_name(api_version, resource["names"]["kind"])).write_text(json.dumps(_strict(schema)))


def _api_version(one: Json) -> str:
    return f"{one['group']}/{one['version']}" if one["group"] else str(one["version"])


def _file_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return "-".join(filter(None, (kind.lower(), group.split(".")[0], version))) + ".json"


def _reached(name: str, definitions: Json) -> set[str]:
    """Return the definitions that one refers to, transitively, and itself."""
    found, due = {name}, [name]
    while due:
        fresh = set(_references(definitions[due.pop()])) - found
        found |= fresh
        due += fresh
    return found


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].removeprefix(PREFIX)
        for one in value.values():
            yield from _references(one)


def _strict(schema: Any) -> Any:
    """Return the schema with unknown properties refused."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items() if key != "description"}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and "type" in schema and not is_open:
        strict["additionalProperties"] = False
    return strict
