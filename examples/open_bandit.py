"""What would Bernoulli Thompson sampling earn, judged from a log of random arms? On the Open Bandit sample.

    pip download --no-deps -d wheels obp==0.4.1
    python examples/open_bandit.py wheels/obp-0.4.1-py3-none-any.whl

The sample (10 000 rounds of a fashion shop, CC BY 4.0, ZOZO, Inc.) is inside the wheel of `obp`, which itself
need not be installed. The shop ran two policies side by side: uniformly random items, and Bernoulli Thompson
sampling. From the random log alone, `fliphat.evaluation` estimates what the other one earns; what it really
earned is in its own log. Nothing here is private: it is a log, for the operator's eyes.
"""

import csv
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from fliphat.evaluation import Log, doubly_robust, inverse_propensity, self_normalised

ITEMS, POSITIONS = 34, 3


def read(wheel, policy):
    """Return items, positions, clicks and propensities of the men's campaign."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"obp/dataset/obd/{policy}/men/men.csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = [np.array([float(row[name]) for row in rows]) for name in ("item_id", "position", "click")]
    chances = np.array([float(row["propensity_score"]) for row in rows])
    items, positions, clicks = columns
    return items.astype(int), positions.astype(int) - 1, clicks, chances


def main(wheel):
    """Estimate one policy's click rate from the other's log."""
    shown, place, clicks, chances = read(wheel, "random")
    other_shown, other_place, other_clicks, _ = read(wheel, "bts")
    # The other policy looks at no context: it is how often it shows each item at each position.
    share = np.ones((POSITIONS, ITEMS))
    np.add.at(share, (other_place, other_shown), 1)
    share /= share.sum(axis=1, keepdims=True)
    log = Log(shown, chances, clicks, ITEMS, contexts=np.eye(POSITIONS)[place])
    print(f"random log: {len(log):,} rounds, {100 * clicks.mean():.2f}% clicks")
    error = 1.96 * other_clicks.std() / len(other_clicks) ** 0.5
    print(f"Thompson sampling really earned {100 * other_clicks.mean():.2f}% +- {100 * error:.2f}")
    for estimate in (inverse_propensity, self_normalised, doubly_robust):
        value = estimate(log, share[place])
        print(
            f"{value.method:>20} from the random log: {100 * value.mean:.2f}%, 95 % interval "
            f"{100 * value.low:.2f}% to {100 * value.high:.2f}%"
        )


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print("This needs the sample inside a wheel. Get it, then give its path:")
        print(__doc__.split("\n\n")[1])
    else:
        main(sys.argv[1])
