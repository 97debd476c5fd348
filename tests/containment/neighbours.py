"""How the two tests of neighbours say what one that is poisoned costs the other."""

import statistics

KINDS = ("without poison", "with poison")
WORKERS = ("poisoned one", "neighbour")


def print_rates(what, rates):
    """Jobs a second of each worker in the rounds of each kind."""
    print(f"{what}; jobs a second:")
    for (who, kind), values in sorted(rates.items()):
        print(f"  {who:<12}  {kind:<14}  median {statistics.median(values):7.0f}  ({min(values):.0f} to {max(values):.0f})")
    without, poisoned = (statistics.median(rates["neighbour", kind]) for kind in KINDS)
    print(f"  the neighbour keeps {poisoned / without * 100:.1f} % of its rate")
