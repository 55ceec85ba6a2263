-- Notes that the continuation of an attempt's outcome went out.
-- KEYS  1 entry
-- ARGV  1 attempt
local old = redis.call('HMGET', KEYS[1], 'attempt', 'state')
if old[1] == ARGV[1] and (old[2] == COMPLETED or old[2] == FAILED) then
  redis.call('HSET', KEYS[1], 'continued', 1)
end
