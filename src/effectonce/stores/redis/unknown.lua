-- Holds an attempt's entry for a person, whatever its state.
-- KEYS  1 entry  2 claims
-- ARGV  1 attempt
local entry, claims = KEYS[1], KEYS[2]
local old = redis.call('HMGET', entry, 'attempt', 'state')
if old[1] == ARGV[1] then
  redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
  if old[2] ~= UNKNOWN then
    redis.call('HSET', entry, 'state', UNKNOWN, 'since', whole(now))
  end
  redis.call('PERSIST', entry)
end
