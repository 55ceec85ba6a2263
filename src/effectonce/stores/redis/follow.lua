-- Registers a message as the one that follows a holder, while that one still holds its claim.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 identity
-- Answers 1 when this message follows, 2 when another one does, 3 when the entry has moved.
local state = held(KEYS[1], ARGV[1], ARGV[2])
if state ~= CLAIMED then
  return 3
end
local follower = redis.call('HGET', KEYS[1], 'follower')
if follower and follower ~= ARGV[3] then
  return 2
end
redis.call('HSET', KEYS[1], 'follower', ARGV[3])
return 1
