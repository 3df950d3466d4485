"""`fliphat plan`: what can be learned, and from which round on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, flag, option, positive

ORDER: Final = 20


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json
    import shlex
    import sys

    from fliphat.lab.display.figure_style import check_picture
    from fliphat.lab.planning import output, plan

    if chosen.out is not None:
        check_picture(chosen.out, (".png", ".svg", ".pdf", ".html"))
    made = plan(**{name: one for name, one in vars(chosen).items() if name not in ("run", "json", "out")})
    print(json.dumps(made.to_dict(), indent=2) if chosen.json else made)
    if chosen.out is not None:
        output.write(made, chosen.out, shlex.join(["fliphat", *sys.argv[1:]]))
        if not chosen.json:
            print(f"\n{chosen.out}")
    return 0


add: Final = command(
    run,
    "plan",
    "what can be learned, and from which round on",
    "Episodes, noise and what they can find, from public numbers alone, not data.",
    [
        "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 1e-6 --reward-scale 1.5",
        "fliphat plan --dim 5000 --sparsity 20 --epsilon 0.5 --delta 1e-6 --rounds 1000000",
        "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 1e-6 --rounds-per-user 3 --json",
    ],
    option("--dim", "coordinates of a context", positive, required=True),
    option("--sparsity", "coordinates that may matter", positive, required=True),
    option("--epsilon", "privacy budget", float, required=True),
    option("--delta", "privacy slack, such as 1e-6", float, required=True),
    option("--rounds", "rounds expected (%(default)s)", positive, 20_000),
    option("--coefficient", "a size that would be worth knowing (%(default)s)", float, 0.5),
    option("--context-scale", "root mean square of a coordinate (%(default)s)", float, 1.0),
    option("--reward-scale", "size of a typical reward (%(default)s)", float, 1.0),
    option("--rounds-per-user", "rounds of one user (%(default)s)", positive, 1),
    option("--loss", "logistic for clicks (%(default)s)", choices=("squared", "logistic"), default="squared"),
    option("--arms", "arms of a round (%(default)s)", positive, 3),
    option("--matter", "columns that matter (half of the sparsity)", positive),
    option("--correlation", "of every two columns (%(default)s)", float, 0.0),
    option("--intercept", "mean reward, of clicks its log odds (%(default)s)", float, 0.0),
    option("--nonzeros", "values of a context that are not zero (all)", positive),
    option("--out FILE", "a picture (.png, .svg, .pdf) or a page (.html)", Path),
    flag("--json", "print the plan for a program to read"),
)
