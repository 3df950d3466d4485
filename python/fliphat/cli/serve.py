"""`fliphat serve`: a policy behind HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from fliphat.cli._parser import command, flag, group, option, positive

ORDER: Final = 60


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    try:
        import httptools  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ValueError("serving needs more packages: pip install 'fliphat[serve]'") from None

    from fliphat.serve.run import Choices, run_server

    return run_server(
        Choices(
            store=chosen.store,
            policy=_policy(chosen),
            write_tokens=chosen.write_token_file,
            operator_tokens=chosen.operator_token_file,
            no_token=chosen.no_token,
            limits=chosen.limits,
            host=chosen.host,
            port=chosen.port,
            workers=chosen.workers,
            log_requests=chosen.log_requests,
            decision_log=chosen.decision_log,
        )
    )


def _policy(chosen: argparse.Namespace) -> dict[str, Any] | None:
    """Return the policy's arguments, None if none were given."""
    import tomllib

    from fliphat.serve.opening import checked_arguments

    given: dict[str, Any] = {}
    if chosen.policy is not None:
        given = tomllib.loads(chosen.policy.read_text(encoding="utf-8"))
    for name in ("dim", "epsilon", "delta", "sparsity", "arms", "context_norm"):
        value = getattr(chosen, name)
        if name == "arms" and value is not None:
            value = int(value) if value.isdigit() else [one.strip() for one in value.split(",")]
        if value is not None:
            if name in given:
                raise ValueError(f"{name} is in the policy's file already: give it once")
            given[name] = value
    if chosen.holdout is not None:
        if "arms" in given or given.get("policy") == "PrivateLinear" or "exploration" in given:
            raise ValueError("--holdout is FLIPHAT's exploration: give it once, and not for PrivateLinear")
        given["exploration"] = chosen.holdout
    return checked_arguments(given) if given else None


add: Final = command(
    run,
    "serve",
    "a policy behind HTTP",
    "Plays one policy for many clients: FLIPHAT, or PrivateLinear if --arms is given. A new "
    "store needs the policy's arguments; one that exists goes on with its own. Tokens come from files, "
    "one a line, which SIGHUP has read again, or from the environment variables FLIPHAT_WRITE_TOKEN and "
    "FLIPHAT_OPERATOR_TOKEN.",
    [
        "fliphat serve store --policy policy.toml --write-token-file w --operator-token-file o",
        "fliphat serve store --dim 100 --sparsity 5 --epsilon 1 --delta 1e-6 --no-token",
        "fliphat serve store --dim 8 --arms a,b --context-norm 1.6 --epsilon 1 --delta 1e-6 --no-token",
        "fliphat serve store --port 8377 --log-requests",
    ],
    option("store STORE", "a directory, or postgresql://... for many workers"),
    group(
        "the policy of a new store",
        option("--policy FILE", 'all its arguments, as TOML; policy = "..." names its class', Path),
        option("--dim D", "columns of a context", positive),
        option("--epsilon E", "privacy budget", float),
        option("--delta P", "privacy slack, such as 1e-6", float),
        option("--sparsity S", "FLIPHAT: columns that may matter", positive),
        option("--arms IDS", "PrivateLinear: ids such as red,blue, or how many"),
        option("--context-norm R", "PrivateLinear: length that contexts have at most", float),
        option(
            "--holdout SHARE",
            "FLIPHAT: share of rounds played uniformly, which shows what the policy earns (exploration)",
            float,
        ),
    ),
    group(
        "who may do what, and where",
        option("--write-token-file FILE", "who has it may play", Path),
        option("--operator-token-file FILE", "who has it sees private counts, and changes arms", Path),
        flag("--no-token", "let everybody on this machine do everything"),
        option("--host", "address to listen on (%(default)s)", default="127.0.0.1"),
        option("--port N", "port to listen on (%(default)s)", positive, 8377),
        option("--workers N", "processes, with a database (%(default)s)", positive, 1),
    ),
    group(
        "limits and logs",
        option(
            "--limits FILE",
            "TOML: body, rounds, waiting, wait, read, idle, threads, connections; read again on SIGHUP",
            Path,
        ),
        flag("--log-requests", "a line for every request, not only refused ones"),
        option(
            "--decision-log FILE",
            "note every decision and reward, without noise, for off-policy evaluation (fliphat export)",
            Path,
        ),
    ),
)
