"""The description of the addresses, as OpenAPI."""

from __future__ import annotations

from typing import Any, Final

from fliphat._native import VERSION
from fliphat.serve.bodies import SHORTEST_KEY
from fliphat.serve.compact import COMPACT
from fliphat.serve.settings import Limits
from fliphat.serve.terms import Terms

__all__ = ["document"]

_ID: Final = {
    "type": "string",
    "pattern": "^[0-9]{1,19}[.][0-9a-f]{16}$",
    "description": "as /select answered it: a number, and a receipt that can't be made up",
}
_NAME: Final = {"oneOf": [{"type": "string", "minLength": 1}, {"type": "integer", "format": "int64"}]}
_SPACES: Final = {"type": ["number", "null"]}


def _object(required: list[str], **members: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": members, "additionalProperties": False}


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items} | more


def _schemas(terms: Terms) -> dict[str, Any]:
    """Return what bodies and answers look like for the policy that is served."""
    row = _list(_SPACES, minItems=terms.dim or 1, **({"maxItems": terms.dim} if terms.dim else {}))
    one = row if terms.depth == 1 else _list(row, minItems=1, description="one list for each arm")
    arm = {"type": "integer", "minimum": 0} if terms.arms is None else _NAME
    estimate: dict[str, Any] = {"indices": _list({"type": "integer"}), "values": _list({"type": "number"})}
    if terms.arms is not None:
        described = "of the columns and a constant, of each arm in the order of arms"
        estimate = {
            "arms": _list(_NAME),
            "coefficients": _list(_list({"type": "number"}), description=described),
        }
    return {
        "Round": _object(["contexts"], contexts=one, user=_NAME, key=_NAME),
        "Rounds": _object(["contexts"], contexts=_list(one), users=_list(_NAME), keys=_list(_NAME)),
        "Decision": _object(
            ["id", "arm", "valid", "episode", "probability"],
            id=_ID,
            arm=arm,
            valid={"type": "boolean"},
            episode={"type": "integer", "minimum": 0},
            probability={"type": ["number", "null"]},
        ),
        "Decisions": _object(
            ["ids", "arms", "valid", "episodes", "probabilities"],
            ids=_list(_ID),
            arms=_list(arm),
            valid=_list({"type": "boolean"}),
            episodes=_list({"type": "integer"}),
            probabilities=_list({"type": ["number", "null"]}),
        ),
        "Reward": _object(["id", "reward"], id=_ID, reward={"type": "number"}),
        "RewardByKey": _object(
            ["key", "reward"],
            key={"type": "string", "minLength": SHORTEST_KEY},
            user=_NAME,
            reward={"type": "number"},
        ),
        "Rewards": _object(["ids", "rewards"], ids=_list(_ID), rewards=_list({"type": "number"})),
        "Taken": _object(["taken"], taken={"type": ["boolean", "integer"]}),
        "Cancel": _object(["id"], id=_ID),
        "Cancelled": _object(["cancelled"], cancelled={"type": "boolean"}),
        "User": _object(["user"], user=_NAME),
        "Forgotten": _object(["rounds"], rounds={"type": "integer", "minimum": 0}),
        "Switch": _object(["arm"], arm={"oneOf": [*_NAME["oneOf"], {"type": "null"}]}),
        "AddArm": _object(["add"], add=_NAME),
        "RemoveArm": _object(["remove"], remove=_NAME),
        "Arms": _object(["arms"], arms=_list(_NAME)),
        "Estimate": _object(
            ["dim", *estimate, "episodes_released"],
            dim={"type": "integer"},
            **estimate,
            episodes_released={"type": "integer"},
        ),
        "Guarantee": {"type": "object"},
        "Alive": _object(["status"], status={"enum": ["alive", "dead"]}),
        "Ready": _object(
            ["status", "detail"], status={"enum": ["ready", "unavailable"]}, detail={"type": "string"}
        ),
        "Status": {"type": "object", "description": "what the operator's page shows"},
        "Error": _object(["error", "detail"], error={"type": "string"}, detail={"type": "string"}),
    }


_REFUSALS: Final = {
    "400": "The body can't be read.",
    "401": "The token is missing or wrong.",
    "403": "From a page of another site, to a server without tokens.",
    "404": "There is no list of arms: every round brings its own.",
    "408": "The body came too slowly.",
    "409": "The decision has a reward already: a repeated update may take this as done.",
    "413": "The body is too large, or has too many rounds or rewards.",
    "415": "The content type is none of these, at a server without tokens.",
    "422": "The body's structure is not what the policy takes; nothing happened.",
    "500": "An unexpected error; it may have happened: try again with the same key.",
    "503": "Busy, stopping, or the store can't be written or goes no further: try again with the same key.",
    "504": "The wait was too long and the request under way: try again with the same key.",
}
_WRITING: Final = ("400", "401", "403", "408", "413", "415", "422", "500", "503", "504")


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _refused(*statuses: str) -> dict[str, Any]:
    error = {"application/json": {"schema": _ref("Error")}}
    headers = {
        "x-request-id": {"description": "The line of the log has the same.", "schema": {"type": "string"}}
    }
    return {
        status: {"description": _REFUSALS[status], "content": error, "headers": headers}
        for status in sorted(statuses)
    }


def _content(names: list[str], compact: str | None = None) -> dict[str, Any]:
    """Return media types and what a body in each looks like."""
    schema = _ref(names[0]) if len(names) == 1 else {"oneOf": [_ref(name) for name in names]}
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    if compact is not None:
        content[COMPACT] = {"schema": {"type": "string", "format": "binary", "description": compact}}
    return content


def _writes(
    operation: str,
    summary: str,
    asked: list[str],
    answers: list[str],
    *,
    compact: str | None = None,
    token: str = "write",
    also: tuple[str, ...] = (),
) -> dict[str, Any]:
    done = {"description": "Done and durable.", "content": _content(answers)}
    return {
        "post": {
            "operationId": operation,
            "summary": summary,
            "security": [{token: []}],
            "requestBody": {"required": True, "content": _content(asked, compact)},
            "responses": {"200": done} | _refused(*_WRITING, *also),
        }
    }


def _reads(
    operation: str,
    summary: str,
    schema: str | None = None,
    kind: str = "application/json",
    refused: tuple[str, ...] = ("503",),
    unwell: bool = False,
) -> dict[str, Any]:
    content = {kind: {"schema": _ref(schema) if schema else {"type": "string"}}}
    responses = {"200": {"description": "As asked.", "content": content}} | _refused("500", *refused)
    if unwell:
        responses["503"] = {"description": "No.", "content": content}
    return {"get": {"operationId": operation, "summary": summary, "responses": responses}}


def document(limits: Limits, terms: Terms | None = None) -> dict[str, Any]:
    """Return the OpenAPI document.

    Examples
    --------
    >>> sorted(document(Limits())["paths"])[:2]
    ['/', '/cancel']
    """
    terms = terms or Terms("FLIPHAT", 0, "float32")
    arms: dict[str, Any] = {}
    if terms.arms is not None:
        changed = "Let rounds play one more arm, or one no more; done again, it changes nothing."
        arms["/arms"] = _writes(
            "changeArms", changed, ["AddArm", "RemoveArm"], ["Arms"], token="operator", also=("404",)
        ) | _reads(
            "arms",
            "The arms that are played now. Public.",
            "Arms",
            refused=("404", "503"),
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fliphat",
            "version": VERSION,
            "description": f"{_which(terms)} A body has at most {limits.body} bytes, and {limits.rounds} "
            f"rounds or rewards; a request waits at most {limits.wait:g} seconds for its answer, while an "
            f"estimate is fitted too.",
        },
        "paths": {
            "/select": _writes(
                "select",
                "Play one round or a batch. The same user and key again get the same decision, whatever the "
                "contexts.",
                ["Round", "Rounds"],
                ["Decision", "Decisions"],
                compact="compact contexts; the answer is JSON",
            ),
            "/update": _writes(
                "update",
                "Hand in the reward of one decision, or of several; late ones are not taken.",
                ["Reward", "RewardByKey", "Rewards"],
                ["Taken"],
                also=("409",),
            ),
            "/cancel": _writes(
                "cancel", "Take a round back: context and reward become zeros.", ["Cancel"], ["Cancelled"]
            ),
            "/forget": _writes(
                "forget",
                "Erase what is kept of a user's rounds. Released estimates stay.",
                ["User"],
                ["Forgotten"],
                token="operator",
            ),
            "/switch": _writes(
                "switch",
                "Give every round one arm and learn nothing, at once and until arm is null.",
                ["Switch"],
                ["Switch"],
                token="operator",
            ),
            **arms,
            "/estimate": _reads("estimate", "The released estimate. Public.", "Estimate"),
            "/guarantee": _reads("guarantee", "The privacy claim. Public.", "Guarantee"),
            "/livez": _reads("livez", "Whether the process works. Public.", "Alive", unwell=True),
            "/readyz": _reads(
                "readyz", "Whether a round could be played, tried a moment ago. Public.", "Ready", unwell=True
            ),
            "/status": _reads("status", "What the policy is and where it is. Public.", "Status"),
            "/metrics": _reads(
                "metrics",
                "Numbers for Prometheus; an operator's only with the operator's token.",
                None,
                "text/plain",
                refused=("401",),
            ),
            "/openapi.json": _reads("openapi", "This description. Public.", refused=()),
            "/": _reads("page", "The operator's page. Public.", None, "text/html", refused=()),
        },
        "components": {
            "schemas": _schemas(terms),
            "securitySchemes": {
                "write": {"type": "http", "scheme": "bearer"},
                "operator": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _which(terms: Terms) -> str:
    if not terms.dim:
        return "A private policy."
    arms = "" if terms.arms is None else f" and {len(terms.arms)} arms"
    contexts = f"A round's contexts are {terms.contexts}."
    return f"A private policy, {terms.policy}, with {terms.dim} columns{arms}. {contexts}"
