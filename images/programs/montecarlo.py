"""Computes the price of a European call by random paths, and compares it with the Black-Scholes formula."""

import argparse
import math
import random
import sys

from parallel import ranks

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument(
    "--paths", type=lambda text: int(float(text)), default=20_000, help="of all ranks together"
)
chosen = parser.parse_args()
world = ranks()
SPOT, STRIKE, RATE, SIGMA, YEARS = 100.0, 105.0, 0.03, 0.2, 1.0
drift, scale = (RATE - SIGMA**2 / 2) * YEARS, SIGMA * math.sqrt(YEARS)
source, count = random.Random(world.rank), max(1, chosen.paths // world.size)
values = [max(0.0, SPOT * math.exp(drift + scale * source.gauss(0, 1)) - STRIKE) for _ in range(count)]
mean, square = world.mean([sum(values) / count, sum(value * value for value in values) / count])
price = math.exp(-RATE * YEARS) * mean
error = math.exp(-RATE * YEARS) * math.sqrt(max(0.0, square - mean * mean) / (count * world.size))
d1 = (math.log(SPOT / STRIKE) + (RATE + SIGMA**2 / 2) * YEARS) / scale
normal = lambda x: (1 + math.erf(x / math.sqrt(2))) / 2  # noqa: E731
exact = SPOT * normal(d1) - STRIKE * math.exp(-RATE * YEARS) * normal(d1 - scale)
if world.rank == 0:
    print(f"price {price:.3f} +- {error:.3f} on {world.size} ranks, by formula {exact:.3f}", flush=True)
sys.exit(abs(price - exact) > 6 * error)
