"""What a provisioning pass is asked: `Problem`, and how it is made from the state (S-40…S-51, S-61…S-78).

Also what is added to the question on the way: pods of capacity buffers, default topology spread, effective zones. May
import the other folders of scheduling, but not `planner`, `packing` or `explain`.
"""
