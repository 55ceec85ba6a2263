-- Sets an entry aside with a message, if nothing has moved since it was read.
-- KEYS  1 entry  2 claims  3 messages
-- ARGV  1 attempt  2 fence  3 state as it was read  4 message
-- Answers 1 when it is poisoned, now or before; 0 when it has moved.
local entry, claims, messages = KEYS[1], KEYS[2], KEYS[3]
local state = held(entry, ARGV[1], ARGV[2])
local unmoved = state == ARGV[3] and (state == CLAIMED or state == RELEASED)
if not unmoved and state ~= POISONED then
  return 0
end
redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
if state ~= POISONED then
  redis.call('HSET', entry, 'state', POISONED, 'since', whole(now))
end
redis.call('PERSIST', entry)
redis.call('ZADD', messages, 'NX', redis.call('ZCARD', messages), ARGV[4])
return 1
