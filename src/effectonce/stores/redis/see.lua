-- Counts a sighting.
-- KEYS  1 sighting
-- ARGV  1 key  2 task  3 task id  4 would  5 again (1 or 0)  6 how long it is kept (ms)
redis.call('HSETNX', KEYS[1], 'first', whole(now))
redis.call('HINCRBY', KEYS[1], 'times', 1)
redis.call('HSET', KEYS[1], 'key', ARGV[1], 'task', ARGV[2], 'task_id', ARGV[3], 'would', ARGV[4], 'again', ARGV[5],
  'last', whole(now))
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
