"""Servers of our own, on ports of their own, in folders of their own: started, killed, frozen and started again.

What runs on the machine already is never touched: no standard port, no standard folder, no shared port mapper. Nothing
is installed here; ``ServiceMissing`` says what is not there.
"""
