"""`fliphat plan`: what can be learned, and from which round on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 20


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    plan = commands.add_parser(
        "plan",
        help="what can be learned, and from which round on",
        description="Episodes, noise and what they can find, from public numbers alone, not data.",
        examples=[
            "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 0.01 --reward-scale 1.5",
            "fliphat plan --dim 5000 --sparsity 20 --epsilon 0.5 --delta 1e-6 --rounds 1000000",
            "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 0.01 --rounds-per-user 3 --json",
        ],
    )
    plan.add_argument("--dim", type=positive, required=True, help="coordinates of a context")
    plan.add_argument("--sparsity", type=positive, required=True, help="coordinates that may matter")
    plan.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    plan.add_argument("--delta", type=float, required=True, help="privacy slack, such as 1e-6")
    plan.add_argument("--rounds", type=positive, default=20_000, help="rounds expected (%(default)s)")
    plan.add_argument(
        "--coefficient", type=float, default=0.5, help="a size that would be worth knowing (%(default)s)"
    )
    plan.add_argument(
        "--context-scale", type=float, default=1.0, help="root mean square of a coordinate (%(default)s)"
    )
    plan.add_argument(
        "--reward-scale", type=float, default=1.0, help="size of a typical reward (%(default)s)"
    )
    plan.add_argument("--rounds-per-user", type=positive, default=1, help="rounds of one user (%(default)s)")
    plan.add_argument(
        "--loss", choices=("squared", "logistic"), default="squared", help="logistic for clicks (%(default)s)"
    )
    plan.add_argument("--arms", type=positive, default=3, help="arms of a round (%(default)s)")
    plan.add_argument("--matter", type=positive, help="columns that matter (half of the sparsity)")
    plan.add_argument("--correlation", type=float, default=0.0, help="of every two columns (%(default)s)")
    plan.add_argument(
        "--intercept", type=float, default=0.0, help="mean reward, of clicks its log odds (%(default)s)"
    )
    plan.add_argument("--nonzeros", type=positive, help="values of a context that are not zero (all)")
    plan.add_argument(
        "--out", type=Path, metavar="FILE", help="a picture (.png, .svg, .pdf) or a page (.html)"
    )
    plan.add_argument("--json", action="store_true", help="print the plan for a program to read")
    plan.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.planning.output import show_plan

    given = {name: value for name, value in vars(chosen).items() if name not in ("command", "run", "json")}
    return show_plan(as_json=chosen.json, **given)
