"""The command line: `fliphat demo`, `plan`, `reproduce`, `audit` and `bench`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from fliphat import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        code = int(chosen.run(chosen))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError) as error:
        print(f"fliphat: error: {error}", file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose examples keep theirs."""

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, epilog=epilog, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fliphat",
        description="Private decisions on high-dimensional data.",
        examples=[
            "fliphat demo",
            "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 0.01 --out plan.png",
            "fliphat reproduce regret-vs-time --quick --report",
        ],
    )
    parser.add_argument("--version", action="version", version=f"fliphat {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_demo(commands)
    _add_plan(commands)
    _add_reproduce(commands)
    _add_audit(commands)
    _add_bench(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="see what it does, in about ten seconds",
        description="Regret of the private policy at several epsilons, between random play and no privacy.",
        examples=["fliphat demo", "fliphat demo --repeats 10 --out regret.png", "fliphat demo --json"],
    )
    demo.add_argument("--repeats", type=_positive, default=5, help="runs of each policy (%(default)s)")
    demo.add_argument(
        "--out", default="fliphat-demo.png", type=Path, metavar="FILE", help="the figure (%(default)s)"
    )
    demo.add_argument("--json", action="store_true", help="print results for a program to read")
    demo.set_defaults(run=_demo)


def _add_plan(commands: Any) -> None:
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
    plan.add_argument("--dim", type=_positive, required=True, help="coordinates of a context")
    plan.add_argument("--sparsity", type=_positive, required=True, help="coordinates that may matter")
    plan.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    plan.add_argument("--delta", type=float, required=True, help="privacy slack, such as 1e-6")
    plan.add_argument("--rounds", type=_positive, default=20_000, help="rounds expected (%(default)s)")
    plan.add_argument(
        "--coefficient", type=float, default=0.5, help="a size that would be worth knowing (%(default)s)"
    )
    plan.add_argument(
        "--context-scale", type=float, default=1.0, help="root mean square of a coordinate (%(default)s)"
    )
    plan.add_argument(
        "--reward-scale", type=float, default=1.0, help="size of a typical reward (%(default)s)"
    )
    plan.add_argument("--rounds-per-user", type=_positive, default=1, help="rounds of one user (%(default)s)")
    plan.add_argument(
        "--loss", choices=("squared", "logistic"), default="squared", help="logistic for clicks (%(default)s)"
    )
    plan.add_argument("--out", type=Path, metavar="FILE", help="draw a picture (.png, .svg or .pdf)")
    plan.add_argument("--json", action="store_true", help="print the plan for a program to read")
    plan.set_defaults(run=_plan)


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and draw their figures",
        description="Regret of the private policy against time, dimension, sparsity, arms and more.",
        examples=[
            "fliphat reproduce all --quick --report",
            "fliphat reproduce regret-vs-time --out figures",
            "fliphat reproduce regret-vs-time --out figures --resume    # after Ctrl-C",
        ],
    )
    reproduce.add_argument(
        "name", metavar="NAME", help="an experiment, or 'all' (a wrong name lists the right ones)"
    )
    reproduce.add_argument("--repeats", type=_positive, help="runs of each policy (default: as published)")
    reproduce.add_argument("--quick", action="store_true", help="few repeats and points, in seconds")
    reproduce.add_argument("--workers", type=_positive, help="processes (default: one a core)")
    reproduce.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, or 'local' for one made here")
    reproduce.add_argument(
        "--out", default="fliphat-results", metavar="DIR", help="where files go (%(default)s)"
    )
    reproduce.add_argument("--report", action="store_true", help="all in one file, DIR/report.html")
    reproduce.add_argument("--resume", action="store_true", help="keep the runs that DIR already has")
    reproduce.add_argument("--json", action="store_true", help="print results for a program to read")
    reproduce.set_defaults(run=_reproduce)


def _add_audit(commands: Any) -> None:
    audit = commands.add_parser(
        "audit",
        help="try to refute the privacy claims, from runs alone",
        description="Lower bounds on epsilon for every mechanism, and for broken ones that must be caught.",
        examples=["fliphat audit --quick", "fliphat audit --runs 10000000 --case niht --json"],
    )
    size = audit.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="5 * 10^5 runs a case, under a minute (the default)"
    )
    size.add_argument("--full", action="store_true", help="2 * 10^7 runs a case, half an hour")
    size.add_argument("--runs", type=_positive, help="runs a case")
    audit.add_argument("--case", help="only cases whose name contains this")
    audit.add_argument("--seed", type=int, help="repeatable noise (default: the noise people get)")
    audit.add_argument("--json", action="store_true", help="print findings for a program to read")
    audit.set_defaults(run=_audit)


def _add_bench(commands: Any) -> None:
    bench = commands.add_parser(
        "bench",
        help="race the kernels against NumPy on this machine",
        description="Times of every kernel beside plain and careful NumPy.",
        examples=["fliphat bench", "fliphat bench --repeats 20 --json > speed.json"],
    )
    bench.add_argument("--repeats", type=_positive, default=10, help="rounds of each race (%(default)s)")
    bench.add_argument("--json", action="store_true", help="print times in seconds for a program to read")
    bench.set_defaults(run=_bench)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _demo(chosen: argparse.Namespace) -> int:
    from fliphat._demo import run

    return run(chosen.repeats, out=chosen.out, as_json=chosen.json)


def _plan(chosen: argparse.Namespace) -> int:
    from fliphat._plan_command import run

    return run(
        dim=chosen.dim,
        sparsity=chosen.sparsity,
        epsilon=chosen.epsilon,
        delta=chosen.delta,
        rounds=chosen.rounds,
        coefficient=chosen.coefficient,
        context_scale=chosen.context_scale,
        reward_scale=chosen.reward_scale,
        rounds_per_user=chosen.rounds_per_user,
        loss=chosen.loss,
        out=chosen.out,
        as_json=chosen.json,
    )


def _reproduce(chosen: argparse.Namespace) -> int:
    from fliphat.experiments.reproduce import reproduce

    return reproduce(
        chosen.name,
        out=Path(chosen.out),
        repeats=chosen.repeats,
        quick=chosen.quick,
        workers=chosen.workers,
        dask=chosen.dask,
        resume=chosen.resume,
        as_json=chosen.json,
        report=chosen.report,
    )


def _audit(chosen: argparse.Namespace) -> int:
    from fliphat._audit_command import FULL_RUNS, QUICK_RUNS, run

    runs = chosen.runs or (FULL_RUNS if chosen.full else QUICK_RUNS)
    return run(runs, only=chosen.case, seed=chosen.seed, as_json=chosen.json)


def _bench(chosen: argparse.Namespace) -> int:
    from fliphat._bench import run

    return run(chosen.repeats, as_json=chosen.json)
