"""Decisions, and nothing else: no clock, no chance, no file, no socket.

A *policy* says how a task takes effect. A *key* names one effect by its meaning, a *fingerprint* tells its arguments. A
*claim* asks a ledger for the right to carry it out, and `claims.admit` and `claims.judge` say what follows. A *lease*
is what a holder believes of its right, `deferral` how long those wait that have none. The model in ``tests/model``
walks all states of these same decisions.
"""
