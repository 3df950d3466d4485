"""The description of the addresses: OpenAPI for programs, and a page for people without scripts."""

from __future__ import annotations

import html
import json
from typing import Any, Final

from fliphat._native import VERSION
from fliphat.serve.bodies import COMPACT
from fliphat.serve.settings import Limits

__all__ = ["document", "page"]

_ID: Final = {"type": "string", "pattern": "^[0-9]{1,19}$"}
_NAME: Final = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
_NUMBERS: Final = {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 1}
_ROUND: Final = {"type": "array", "items": _NUMBERS, "minItems": 1, "description": "one list an arm"}


def _object(required: list[str], **members: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": members, "additionalProperties": False}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_SCHEMAS: Final[dict[str, Any]] = {
    "Round": _object(["contexts"], contexts=_ROUND, user=_NAME, key=_NAME),
    "Rounds": _object(["contexts"], contexts=_list(_ROUND), users=_list(_NAME), keys=_list(_NAME)),
    "Decision": _object(
        ["id", "arm", "valid", "episode", "probability"],
        id=_ID,
        arm={"type": "integer", "minimum": 0},
        valid={"type": "boolean"},
        episode={"type": "integer", "minimum": 0},
        probability={"type": ["number", "null"]},
    ),
    "Decisions": _object(
        ["ids", "arms", "valid", "episodes", "probabilities"],
        ids=_list(_ID),
        arms=_list({"type": "integer"}),
        valid=_list({"type": "boolean"}),
        episodes=_list({"type": "integer"}),
        probabilities=_list({"type": ["number", "null"]}),
    ),
    "Reward": _object(["id", "reward"], id=_ID, reward={"type": "number"}),
    "RewardByKey": _object(["key", "reward"], key=_NAME, user=_NAME, reward={"type": "number"}),
    "Rewards": _object(["ids", "rewards"], ids=_list(_ID), rewards=_list({"type": "number"})),
    "Taken": _object(["taken"], taken={"type": ["boolean", "integer"]}),
    "Estimate": _object(
        ["dim", "indices", "values", "episodes_released"],
        dim={"type": "integer"},
        indices=_list({"type": "integer"}),
        values=_list({"type": "number"}),
        episodes_released={"type": "integer"},
    ),
    "Guarantee": {"type": "object"},
    "Health": _object(
        ["status", "findings"], status={"enum": ["ok", "unavailable"]}, findings=_list({"type": "string"})
    ),
    "Error": _object(["error", "detail"], error={"type": "string"}, detail={"type": "string"}),
}

_REFUSALS: Final = {
    "400": "The body can't be read.",
    "401": "The token is missing or wrong.",
    "408": "The body came too slowly.",
    "409": "The decision has a reward already: a repeated update may take this as done.",
    "413": "The body is too large.",
    "422": "The body's structure is not what the policy takes; nothing happened.",
    "503": "Busy, stopping, or the store can't be written: try again with the same key.",
    "504": "The wait was too long and the request under way: try again with the same key.",
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _writes(summary: str, asked: list[str], answers: list[str], compact: str) -> dict[str, Any]:
    refused = {
        status: {"description": text, "content": {"application/json": {"schema": _ref("Error")}}}
        for status, text in _REFUSALS.items()
    }
    body = {"schema": {"oneOf": [_ref(name) for name in asked]}}
    raw = {"schema": {"type": "string", "format": "binary", "description": compact}}
    answer = {"schema": {"oneOf": [_ref(name) for name in answers]} if len(answers) > 1 else _ref(answers[0])}
    return {
        "post": {
            "summary": summary,
            "security": [{"write": []}],
            "requestBody": {"required": True, "content": {"application/json": body, COMPACT: raw}},
            "responses": {
                "200": {"description": "Done and durable.", "content": {"application/json": answer}}
            }
            | refused,
        }
    }


def _reads(summary: str, schema: str | None = None, kind: str = "application/json") -> dict[str, Any]:
    content = {kind: {"schema": _ref(schema) if schema else {"type": "string"}}}
    return {
        "get": {"summary": summary, "responses": {"200": {"description": "As asked.", "content": content}}}
    }


def document(limits: Limits) -> dict[str, Any]:
    """Return the OpenAPI document.

    Examples
    --------
    >>> sorted(document(Limits())["paths"])[:2]
    ['/estimate', '/guarantee']
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fliphat",
            "version": VERSION,
            "description": f"A private policy. Bodies have at most {limits.body} bytes; a request waits at "
            f"most {limits.wait:g} seconds for its answer, while an estimate is fitted too.",
        },
        "paths": {
            "/select": _writes(
                "Play one round or a batch. The same user and key again get the same decision, whatever the "
                "contexts.",
                ["Round", "Rounds"],
                ["Decision", "Decisions"],
                "compact contexts; the answer is compact too",
            ),
            "/update": _writes(
                "Hand in the reward of one decision, or of several; late ones are not taken.",
                ["Reward", "RewardByKey", "Rewards"],
                ["Taken"],
                "compact ids and rewards; the answer is JSON",
            ),
            "/estimate": _reads("The released estimate. Public.", "Estimate"),
            "/guarantee": _reads("The privacy claim. Public.", "Guarantee"),
            "/healthz": _reads("Whether rounds can be played, and signs of trouble. Public.", "Health"),
            "/metrics": _reads(
                "Numbers for Prometheus; an operator's only with the operator's token.", None, "text/plain"
            ),
            "/openapi.json": _reads("This description. Public."),
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "write": {"type": "http", "scheme": "bearer"},
                "operator": {"type": "http", "scheme": "bearer"},
            },
        },
    }


_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h2 { font-size: 1.1rem; margin-top: 2rem } code, pre { font-family: ui-monospace, monospace }
pre { background: #f4f4f6; padding: .8rem; overflow-x: auto }
td { padding: .2rem .8rem .2rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #16161a } pre { background: #24242a } a { color: #9db4ff }
}
"""


def page(limits: Limits) -> str:
    """Return the page: the same description, read by people, with nothing loaded from anywhere.

    Examples
    --------
    >>> "<script" in page(Limits())
    False
    """
    described = document(limits)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>fliphat</title><style>{_STYLE}</style><h1>fliphat {html.escape(VERSION)}</h1>",
        f"<p>{html.escape(described['info']['description'])} For programs: ",
        "<a href=openapi.json>openapi.json</a></p>",
    ]
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            parts.append(
                f"<h2><code>{method.upper()} {path}</code></h2><p>{html.escape(told['summary'])}</p>"
            )
            if "requestBody" in told:
                parts.append("<p>Needs the token for writing. Bodies, as JSON:</p>")
                for option in told["requestBody"]["content"]["application/json"]["schema"]["oneOf"]:
                    parts.append(_shown(option["$ref"].rsplit("/", 1)[1]))
            rows = "".join(
                f"<tr><td>{status}<td>{html.escape(answer['description'])}"
                for status, answer in told["responses"].items()
            )
            parts.append(f"<table>{rows}</table>")
    return "".join(parts) + "</html>\n"


def _shown(name: str) -> str:
    members = _SCHEMAS[name]["properties"]
    text = json.dumps({member: _example(schema) for member, schema in members.items()})
    return f"<pre>{html.escape(text)}</pre>"


def _example(schema: dict[str, Any]) -> Any:
    if "oneOf" in schema:
        return _example(schema["oneOf"][0])
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind == "array":
        return [_example(schema["items"])] * 2
    return {"number": 0.5, "integer": 1, "boolean": True}.get(kind, "17" if "pattern" in schema else "...")
