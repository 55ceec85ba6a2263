"""A ledger in Redis or Valkey: one hash an effect, one script a question.

Keys. ``ab`` is the first byte of the digest in hex, and the hash tag: an effect's keys share one slot of a Cluster::

    prefix:{ab}:<digest in hex>         the entry, a hash
    prefix:{ab}:<digest in hex>:held    messages kept with it, a sorted set in the order they came
    prefix:{ab}:claims                  entries that are claimed, by the instant from which they may be rescued

A claimed entry has no time to live: its lease is a field, and what ends it is the next claim or the rescuer. Ended
entries and tombstones live as long as the policy's `keep`; held ones until a person settles them.

A server that is full (`maxmemory` without eviction) refuses new claims, and still takes what ends them: those scripts
write something first that needs no memory, after which Redis lets the script go on.

Each script reads the server's clock, so no worker's clock matters, and runs alone, so what it read still stands when
it writes. Instants are microseconds, written in full ('%.0f'): they have sixteen digits, and Lua keeps whole numbers
below 2^53 exactly.
"""
