"""Folds a chain on a grid (the HP model) by random moves; ranks work independently, and the best energy wins.

PROTEIN_ID seeds the chain, SIMULATION_STEPS is the number of moves of all ranks together.
"""

import json
import os
import random
import sys

from parallel import Ending, ranks

world = ranks()
steps = int(float(os.environ.get("SIMULATION_STEPS", "20000"))) // world.size
chain = [
    random.Random(os.environ.get("PROTEIN_ID", "ACE2") + str(place)).random() < 0.5 for place in range(24)
]
source = random.Random(world.rank)
TURNS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def energy(moves):
    """Return the energy, -1 for each contact of hydrophobic parts, or None if the chain crosses itself."""
    places, x, y = {(0, 0): 0}, 0, 0
    for index, move in enumerate(moves, 1):
        x, y = x + TURNS[move][0], y + TURNS[move][1]
        if (x, y) in places:
            return None
        places[x, y] = index
    return -sum(
        chain[index] and chain[other] and other > index + 1
        for (px, py), index in places.items()
        for dx, dy in TURNS
        for other in [places.get((px + dx, py + dy), -1)]
    )


moves, best, start = [0] * (len(chain) - 1), 0, 0
folder, ending = os.environ.get("CHECKPOINT_DIR"), Ending()
kept = os.path.join(folder, f"chain-{world.rank}.json") if folder else None
if folder:
    os.makedirs(folder, exist_ok=True)
if kept and os.path.exists(kept):
    with open(kept) as file:
        moves, best, start = json.load(file)
now = energy(moves)
for step in range(start, steps):
    if kept and (ending.asked or step % 10_000 == 9_999):
        with open(kept + ".new", "w") as file:
            json.dump([moves, best, step], file)
        os.replace(kept + ".new", kept)
    if ending.asked:
        sys.exit(3)
    tried = moves.copy()
    tried[source.randrange(len(tried))] = source.randrange(4)
    found = energy(tried)
    if found is not None and (found <= now or source.random() < 0.05):
        moves, now = tried, found
        best = min(best, now)
# A one-hot row for each rank: the mean times the size is the best of every rank.
bests = world.mean([float(best) if index == world.rank else 0.0 for index in range(world.size)])
if world.rank == 0:
    print(
        f"lowest energy {round(min(bests) * world.size)} of {world.size} ranks, {steps} moves each",
        flush=True,
    )
sys.exit(0)
