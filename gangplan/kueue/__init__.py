"""A port of Kueue's own arithmetic: v0.19.2, with the differences of 0.15.2 and 0.18.2.

It has units, the tree of quotas, flavor assignment, preemption and one cycle of the scheduler. It does not
know built objects (`gangplan.validate.kueue` reads those) or time (`gangplan.simulate`).
"""
