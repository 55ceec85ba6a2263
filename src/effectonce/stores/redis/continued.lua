-- Notes that the continuation of an attempt's outcome went out.
-- KEYS  1 entry
-- ARGV  1 attempt
if redis.call('HGET', KEYS[1], 'attempt') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'continued', 1)
end
