"""The faces of older libraries over our leases, so that a project moves by changing an import.

A lock is a reservation: a name that is somebody's for a time, the holder being the message that was sent. So a lock is
given back by its own message alone, a retry is not refused by its own lock, and a lock whose message is lost ends. What
these libraries do not do is not done here either: they keep a task from being *queued* twice, and nothing keeps its
effect from taking place twice when its message is delivered again. That is what a policy is for.
"""
