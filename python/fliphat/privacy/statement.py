"""The words of a guarantee: one paragraph for a privacy officer.

Numbers are shown as given or rounded up, so that nothing printed is stronger than what is proven.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fliphat.privacy.guarantee import Guarantee

__all__ = ["describe"]

_VALUES = {
    "rounded_gaussian": "rounded Gaussian",
    "gaussian": "discrete Gaussian",
    "laplace": "discrete Laplace",
}
_PICKS = {"exponential": "the exponential mechanism", "laplace": "report-noisy-max with Laplace noise"}


def describe(claim: Guarantee) -> str:
    """Return the paragraph: the claim, what it means, what it leaves out, and how it is reached."""
    parts = (_headline(claim), _meaning(claim), _users(claim), _limits(claim), _method(claim))
    return " ".join(parts)


def _headline(claim: Guarantee) -> str:
    flavour = "joint differential privacy" if claim.setting == "bandit" else "differential privacy"
    level = f"epsilon = {float(claim.epsilon)!r}, delta = {float(claim.delta)!r}"
    if claim.delta == 0:
        flavour, level = f"pure {flavour}", f"epsilon = {float(claim.epsilon)!r}, delta = 0"
    if claim.proven:
        return f"Proven: {flavour} with {level}."
    return f"NOT PROVEN: {flavour} with {level} was asked for, but {', and '.join(claim.reasons)}."


def _meaning(claim: Guarantee) -> str:
    if claim.setting == "bandit":
        contents = "contexts, reward, and whether a reward came"
        seen = "the arms all others are shown and all released numbers"
    else:
        contents = "features and target"
        of = f" of all {claim.fits} fits in its ledger" if claim.fits > 1 else ""
        seen = f"the fitted coefficients{of} and everything computed from them"
    noun = _noun(claim)
    if claim.unit != "user":
        whose = f"everything one {noun} brought ({contents})"
    elif claim.user_ids == "checked":
        whose = f"everything a user brought in all their {noun}s ({contents})"
    else:
        whose = f"everything a user brought in up to {claim.rounds_per_user} {noun}s ({contents})"
    slack = f" plus {float(claim.delta)!r}" if claim.delta else ""
    subject, verb = ("Protected is", "has") if claim.proven else ("Meant to be protected is", "should have")
    return (
        f"{subject} {whose}: if it were replaced by anything else, any event in {seen} that had probability "
        f"p {verb} probability at most {_exp_rounded_up(claim.epsilon)} p{slack}, whatever else an observer "
        f"knows."
    )


def _users(claim: Guarantee) -> str:
    noun = _noun(claim)
    if claim.user_ids == "checked":
        k = claim.rounds_per_user
        first = f"the first {noun}" if k == 1 else f"the first {k} {noun}s"
        return f"User ids are checked: only {first} of a user can be learned from."
    if claim.user_ids == "promised":
        return (
            f"That no user has more than {claim.rounds_per_user} {noun}s is promised by the caller and not "
            f"checked; a user with more is protected less."
        )
    return f"A person behind several {noun}s is protected for each of them, not for all of them together."


def _limits(claim: Guarantee) -> str:
    if claim.setting == "regression":
        return (
            "Not protected: the number of rows, whether the input was valid, which labels occur unless they "
            "were declared, what the operator keeps (the data, logs), and how long the computation takes."
        )
    return (
        "Not protected: that a round took place and under which id, the arm this person was shown, what the "
        "operator keeps (files, logs, counters, pending decisions), and how long a computation takes. Others "
        "may react to released numbers and to their own arms, but not to this person's arm or reward."
    )


def _method(claim: Guarantee) -> str:
    picks = _PICKS.get(claim.mechanism, "")
    if claim.accounting == "none":
        values = claim.value_noise.capitalize()
        return f"Method: {picks}, {values} noise on values, in floating point, with the paper's constants."
    text = f"Method: {picks}{', ' if picks else ''}{_VALUES[claim.value_noise]} noise on integer values"
    if claim.accounting == "exact":
        text += ", priced exactly against an observer who adapts to everything released"
    elif claim.rho is not None and claim.delta:
        text += f", at most {_rounded_up(claim.rho)}-zCDP"
    if claim.seeded:
        return f"{text}."
    return (
        f"{text}. The noise is exact for truly random bits; they come from the operating system, expanded by "
        f"ChaCha20, so the guarantee is against observers who cannot break that cipher."
    )


def _noun(claim: Guarantee) -> str:
    return "round" if claim.setting == "bandit" else "row"


def _rounded_up(value: Fraction | Decimal) -> str:
    up = Context(prec=4, rounding=ROUND_CEILING)
    if isinstance(value, Fraction):
        return f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)):g}"
    return f"{up.plus(value):g}"


def _exp_rounded_up(epsilon: float) -> str:
    # Correctly rounded to 40 digits, then nudged above the true value before the four shown digits round up.
    precise = Context(prec=40)
    return _rounded_up(precise.multiply(precise.exp(Decimal(epsilon)), Decimal(1) + Decimal("1e-38")))
