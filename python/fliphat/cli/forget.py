"""`fliphat forget`: erase what a store keeps of a user."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, flag, option

ORDER: Final = 75


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    by_http = chosen.store.startswith(("http://", "https://"))
    rounds = _at_a_server(chosen) if by_http else _in_a_store(chosen)
    if chosen.json:
        print(json.dumps({"rounds": rounds}))
        return 0
    print(f"{rounds} rounds have no contents any more; what was released stays, and so does their number")
    return 0


def _at_a_server(chosen: argparse.Namespace) -> int:
    from fliphat.serve.client import Client, ServerError

    token = None
    if chosen.operator_token_file is not None:
        token = chosen.operator_token_file.read_text(encoding="utf-8").splitlines()[0].strip()
    with Client(chosen.store, token) as client:
        try:
            return client.forget(chosen.user)
        except ServerError as error:
            if error.status != 422 or not _is_integer(chosen.user):
                raise ValueError(str(error)) from None
        try:
            return client.forget(int(chosen.user))  # this policy's ids are numbers
        except ServerError as error:
            raise ValueError(str(error)) from None


def _in_a_store(chosen: argparse.Namespace) -> int:
    from fliphat.serve.opening import reopened

    with reopened(chosen.store, chosen.witness) as policy:
        engine = policy._engine
        numbers = engine is not None and engine.user_kind == "int"
        return policy.forget(int(chosen.user) if numbers else chosen.user)


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdigit()


add: Final = command(
    run,
    "forget",
    "erase what a store keeps of a user",
    "Turns a user's rounds that were not released yet into rounds without contents. A store "
    "that a server plays is asked through the server, a database also directly.",
    [
        "fliphat forget postgresql://shop@db/policies --user u17",
        "fliphat forget http://127.0.0.1:8377 --user u17 --operator-token-file operator.token",
    ],
    option("store STORE", "a store's directory, postgresql://..., or a server's http://..."),
    option("--user ID", "the id that rounds were played with", required=True),
    option("--witness WHERE", "of a store that is played with one"),
    option("--operator-token-file FILE", "for a server", Path),
    flag("--json", "print facts for a program to read"),
)
