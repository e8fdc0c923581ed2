"""Kueue's own arithmetic, written once after its source: v0.19.2, and what differs in 0.15.2 and 0.18.2.

Units, the tree of quotas, the choice of flavors, preemption and one cycle of the scheduler. It knows neither
built objects (`gangplan.validate.kueue` reads those) nor time (`gangplan.simulate`).
"""
