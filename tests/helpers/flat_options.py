"""Arguments of FLIPHAT with those of its fit beside them, for tests that vary one at a time."""

from dataclasses import fields

from fliphat.fit.options import Iht, Pursuit

IHT = {field.name for field in fields(Iht)}
PURSUIT = {field.name for field in fields(Pursuit)}


def nested(given):
    """Return the arguments with what belongs to a fit moved into ``fit=``."""
    own = {name: value for name, value in given.items() if name in IHT | PURSUIT}
    if not own:
        return dict(given)
    kind = Iht if own.keys() & IHT else Pursuit
    return {name: value for name, value in given.items() if name not in own} | {"fit": kind(**own)}
