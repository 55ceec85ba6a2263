"""One scenario, carried out for one contender, in a process of its own.

`place` is what its processes share, `app` the app that workers load, `tasks` its tasks, `effects` what they write and
the judge counts, `diary` what happened when, `faults` how a process dies at a chosen instant, `trial` what a scenario
says, `verdict` what is made of it, `runner` runs many at once.
"""
