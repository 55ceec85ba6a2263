"""The protocol, as decisions without a clock, without chance and without I/O.

A *policy* is what a task says about its effect. From it and a call's arguments come a *key*, the name of the effect,
and a *fingerprint*, by which a key that is used for something else is noticed. Every process and every attempt comes
to the same ones, whoever sent the message. A *claim* on the key is granted or judged; a *lease* says how long its
holder may believe in it; a *deferral* how long the others wait.

Each decision takes what is known and returns what to do. So it can be tested by itself, and run through every
interleaving by a model. Stores say the same in SQL and Lua, and are held to it.

::

    policy ── check ──> templates, callables, options        when the task is defined
    call ──> arguments ──> keys ──> plain, canonical (bytes), readable (text)
                      └──> fingerprints
    delivery + entry ──> claims ──> leases, deferral
"""
