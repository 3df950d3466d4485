"""What a study, a plan or a figure says needs no explanation: words that readers stumbled over are gone."""

import re
from html import unescape
from pathlib import Path

import pytest

import fliphat
from fliphat.lab.planning import output as plans
from fliphat.lab.tables.output import draw as draw_study
from invented_study import study

ROOT = Path(__file__).parents[2]
FORBIDDEN = (
    "regret of a round, of random play's",
    "in twentieths of the run",
    "times as late",
    "asked for",
    "size that a pick is taken for",
    "run away",
    "blown up",
    "nobody has looked at",
    "played in public",
    "look before you leap",
    "luck",
    "what any number of them would have",
)
#: Names of our own fit, which a study and a plan do without; figures of fits explain them in their pages.
UNEXPLAINED = ("pursuit", "picks", "iht")

LEVELS = {("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.55, ("PrivateLinear", 1.0): (0.5, 0.7, 0.2, 0.65)}


def found(words, text):
    plain = " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split()).lower()
    return [word for word in words if re.search(rf"\b{re.escape(word)}\b", plain)]


def letters(figure):
    """Return every text of a figure."""
    import matplotlib.text

    return " | ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def of_study(**options):
    made = study(LEVELS, **options)
    return " | ".join([str(made), made._repr_html_(), letters(draw_study(made))])


def of_plan(rounds):
    made = fliphat.plan(dim=400, sparsity=10, epsilon=1.0, delta=0.01, rounds=rounds)
    return " | ".join([plans.text(made), plans.card(made), letters(plans.draw(made))])


@pytest.mark.parametrize(
    "said",
    [of_study, lambda: of_study(logged=True, unusual=1), lambda: of_plan(100), lambda: of_plan(3000)],
    ids=["study", "thin log", "plan without an estimate", "plan"],
)
def test_a_study_and_a_plan_say_nothing_that_must_be_explained(said):
    assert found(FORBIDDEN + UNEXPLAINED, said()) == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "figures").glob("*.svg")), ids=lambda path: path.stem
)
def test_figures_say_nothing_that_must_be_explained(path):
    # Letters are drawn as text, or as paths below a comment that has them.
    drawn = re.findall(r"<!-- (.*?) -->|<text[^>]*>(.*?)</text>", path.read_text(encoding="utf-8"), re.DOTALL)
    assert drawn, "without letters there is nothing to read"
    assert found(FORBIDDEN, " | ".join(comment or text for comment, text in drawn)) == []


@pytest.mark.parametrize("word", FORBIDDEN + UNEXPLAINED)
def test_control_each_of_the_words_is_noticed(word):
    assert word in found(FORBIDDEN + UNEXPLAINED, f"<p>Here is <b>{word}</b>, again.</p>")
