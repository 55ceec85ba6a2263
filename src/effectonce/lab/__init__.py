"""Real workers, real servers, real deaths: what `effectonce demo` runs, and what tests start and kill.

`processes` starts and kills them, `reaper` ends them when we are killed ourselves, `valkey` is a broker that needs
neither root nor a package of the system. The demo: `demo_app` is the app of its workers, `charges` the work and its
judge, `journal` what its bodies did, `caller` who sends and repeats, `demo` what happens when, `report` the table.
"""
