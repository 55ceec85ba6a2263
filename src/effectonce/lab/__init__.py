"""Real workers, real servers, real deaths: what `effectonce demo` runs, and what tests start and kill.

`processes` starts and kills them, `reaper` ends them when we are killed ourselves, `valkey` is a broker that needs
neither root nor a package of the system.

`effectonce lab`: `scenarios` are what is made to happen, `contenders` the columns, `trials` one of each carried out,
`results` what is made of it. `servers` are what they run on, `proxy` the bad network before them.

The demo: `orders` is the plan, `caller` sends and repeats, `shop` is the app with its plain and its guarded task
(`demo_app` as workers load it), `charges` the work and its judge, `journal` what the bodies did. `stage` puts all of
it up and takes it down, `demo` says what happens when, `tally` counts, `report` and `narrator` tell.
"""
