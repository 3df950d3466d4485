"""`fliphat audit`: the table of claims, bounds and verdicts."""

from __future__ import annotations

import json
import sys
from typing import Final

from fliphat.lab.audit import CONFIDENCE, Case, Finding, audit_case, mechanism_cases
from fliphat.lab.audit.fliphat import policy_cases
from fliphat.lab.audit.linear import linear_cases
from fliphat.lab.audit.peers import peer_cases
from fliphat.lab.audit.pilot import pilot_cases
from fliphat.lab.audit.pursuit import pursuit_cases
from fliphat.lab.audit.regression import regressor_case
from fliphat.lab.display import Progress, TextTable

#: Quick is under a minute of one core, full ten times that.
QUICK_RUNS, FULL_RUNS = 500_000, 5_000_000

_COLUMNS: Final = ("case", "claimed", "delta", "at least", "runs", "verdict")


def all_cases() -> list[Case]:
    """Return every case: the mechanisms, what is built on them, and the controls."""
    cases = [*mechanism_cases(), regressor_case(), *policy_cases(), *pursuit_cases(), *linear_cases()]
    cases += [*pilot_cases(), *peer_cases()]
    return sorted(cases, key=lambda case: case.broken is not None)


def show_audit(runs: int, *, only: str | None, seed: int | None, as_json: bool) -> int:
    """Audit every case and return 0 if all claims stand and all controls are caught, else 1."""
    cases = [case for case in all_cases() if only is None or only in case.name]
    if not cases:
        names = "; ".join(case.name for case in all_cases())
        raise ValueError(f"--case must be part of a case's name, got {only!r} (cases: {names})")
    findings = []
    table = _table(cases)
    if not as_json:
        print(table.heading(), flush=True)
    complete = False
    try:
        for number, case in enumerate(cases, 1):
            with Progress(f"[{number}/{len(cases)}] {case.name}", runs) as progress:
                finding = audit_case(case, runs, seed=seed, progress=progress.advance)
            findings.append(finding)
            if not as_json:
                print(table.line(_row(finding)), flush=True)
        complete = True
    finally:  # after Ctrl-C, what was found so far still counts
        sound = all(finding.as_it_should_be for finding in findings)
        if as_json:
            record = {
                "confidence": CONFIDENCE,
                "complete": complete,
                "sound": sound and complete,
                "findings": [f.to_dict() for f in findings],
            }
            print(json.dumps(record, indent=2))
        else:
            _print_summary(findings)
        if not complete:
            left = cases[len(findings)].name
            print(
                f"\nstopped after {len(findings)} of {len(cases)} cases: "
                f"--case {left!r} runs the next one, and so on",
                file=sys.stderr,
            )
    return 0 if sound else 1


def _table(cases: list[Case]) -> TextTable:
    width = max(len(case.name) for case in cases)
    return TextTable(_COLUMNS, (width, 8, 6, 8, 12, 10), left=(0, 5))


def _row(finding: Finding) -> tuple[str, ...]:
    return (
        finding.case,
        f"{finding.claimed_epsilon:.3f}",
        f"{finding.delta:g}",
        f"{finding.lower_bound:.3f}",
        f"{finding.runs:,}",
        finding.verdict,
    )


def _print_summary(findings: list[Finding]) -> None:
    claims = [finding for finding in findings if not finding.control]
    controls = [finding for finding in findings if finding.control]
    stand = sum(finding.as_it_should_be for finding in claims)
    caught = sum(finding.as_it_should_be for finding in controls)
    print(
        f"\n{stand} of {len(claims)} claims stand, "
        f"{caught} of {len(controls)} broken mechanisms are caught.\n"
        f"'at least' is a lower bound on epsilon at {CONFIDENCE:.1%} confidence: "
        "above the claim it refutes it,\nbelow it proves nothing. The proof is in docs/privacy.md."
    )
    if stand < len(claims) or caught < len(controls):
        print("fliphat: a claim was refuted or a control was missed", file=sys.stderr)
