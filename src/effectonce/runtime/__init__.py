"""Attempts and loops: what joins the domain's decisions to a store, through ports.

An *attempt* carries out one body because of one delivery. It takes the claim, runs the body, and settles: the
outcome is written on condition of the fence, so a holder that slept past its end cannot settle any more. The
loops run beside it: the *keeper* renews what this process holds, the *rescuer* frees what nobody holds any more,
the *sentry* asks whether the ledger answers. Nothing here knows Celery.
"""
