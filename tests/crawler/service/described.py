"""Answers held against the description of /v1, which is OpenAPI and JSON Schema."""

import json
import re
from typing import Any

from freshet.crawler.read.api import description

DESCRIPTION = description()
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip
KEYWORDS = {
    "type", "enum", "required", "properties", "additionalProperties", "items", "minimum",
    "maximum", "default",
}  # fmt: skip


def followed(node: dict[str, Any]) -> dict[str, Any]:
    """Return what a reference leads to."""
    while "$ref" in node:
        path = node["$ref"].removeprefix("#/").split("/")
        node = DESCRIPTION
        for name in path:
            node = node[name]
    return node


def faults(value: object, schema: dict[str, Any], place: str = "$") -> list[str]:
    """Return where a value is not as a schema says."""
    schema = followed(schema)
    assert schema.keys() <= KEYWORDS, schema.keys() - KEYWORDS
    types = schema.get("type", list(TYPES))
    types = types if isinstance(types, list) else [types]
    fits = [isinstance(value, TYPES[each]) for each in types]
    if not any(fits) or (isinstance(value, bool) and "boolean" not in types):
        return [f"{place}: {value!r} is not {types}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is not of {schema['enum']}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{place}.{each} is missing" for each in schema.get("required", ())]
        found = [each for each in found if each.split(".")[-1].split(" ")[0] not in value]
        for name, inner in value.items():
            if name in known:
                found += faults(inner, known[name], f"{place}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{place}.{name} is not described")
    if isinstance(value, list) and "items" in schema:
        found += [f for i, each in enumerate(value) for f in faults(each, schema["items"], f"{i}")]
    return found


def route_of(path: str) -> str:
    """Return the described path that a path is of."""
    path = re.sub(r"^/feeds/.*", "/feeds/{secret}", path)
    return re.sub(r"^/o/.+", "/o/{id}", re.sub(r"^/v1/pages/.+", "/v1/pages/{url}", path))


def undescribed(path: str, status: int, content_type: str, body: str) -> list[str]:
    """Return what of an answer is not as it is described."""
    responses = DESCRIPTION["paths"][route_of(path)]["get"]["responses"]
    if str(status) not in responses:
        return [f"{path}: {status} is not described"]
    contents = followed(responses[str(status)]).get("content")
    if contents is None:
        return [f"{path}: {status} has a body"] if body else []
    if content_type not in contents:
        return [f"{path}: {status} as {content_type} is not described"]
    schema = contents[content_type]["schema"]
    if content_type.endswith(("/json", "+json")):
        return faults(json.loads(body), schema)
    if content_type == "application/x-ndjson":
        return [f for line in body.split("\n") if line for f in faults(json.loads(line), schema)]
    return faults(body, schema)
