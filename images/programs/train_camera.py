"""Training of a camera model. The model is a stand-in: see training.py."""

import sys

from training import options, train

sys.exit(train(options(__doc__).parse_args()))
