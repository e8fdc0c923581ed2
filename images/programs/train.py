"""Fine-tuning with a DeepSpeed configuration. The model is a stand-in: see training.py."""

import json
import sys

from parallel import ranks
from training import options, train

parser = options(__doc__)
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--deepspeed", metavar="CONFIG")
chosen = parser.parse_args()
batch = 16
if chosen.deepspeed:
    with open(chosen.deepspeed) as file:
        config = json.load(file)
    batch = config["train_micro_batch_size_per_gpu"]
    whole = batch * config["gradient_accumulation_steps"] * ranks().size
    if config.get("train_batch_size", whole) != whole:
        sys.exit(f"train_batch_size is {config['train_batch_size']}, the ranks make {whole}")
sys.exit(train(chosen, batch))
