-- Does once what the other scripts do, on keys of its own, so that a missing permission is found before the work.
-- KEYS  1 a hash  2 a sorted set
redis.call('HSET', KEYS[1], 'state', CLAIMED, 'fence', whole(now))
redis.call('HINCRBY', KEYS[1], 'deaths', 1)
redis.call('HDEL', KEYS[1], 'deaths')
redis.call('HGET', KEYS[1], 'state')
redis.call('HMGET', KEYS[1], 'state', 'fence')
forget(KEYS[1], 1000)
forget(KEYS[1], '')
redis.call('ZADD', KEYS[2], 'NX', redis.call('ZCARD', KEYS[2]), 'member')
redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. whole(now), 'LIMIT', 0, 1)
redis.call('ZREM', KEYS[2], 'member')
redis.call('DEL', KEYS[1], KEYS[2])
