-- Keeps one more message with an entry that waits for a person; the same bytes once.
-- KEYS  1 entry  2 messages
-- ARGV  1 message
local state = redis.call('HGET', KEYS[1], 'state')
if state == UNKNOWN or state == POISONED then
  redis.call('ZADD', KEYS[2], 'NX', redis.call('ZCARD', KEYS[2]), ARGV[1])
end
