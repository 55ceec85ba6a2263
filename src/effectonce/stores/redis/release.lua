-- Lets a key go, by fence and attempt; the tombstone keeps both, so fences go on from there.
-- KEYS  1 entry  2 claims
-- ARGV  1 attempt  2 fence  3 retries  4 reset (1 or 0)  5 keep (ms, '' for ever)
-- Answers 1 while the key is free and nobody else has had it since; 0 when it is fenced.
local entry, claims = KEYS[1], KEYS[2]
local state = held(entry, ARGV[1], ARGV[2])
if state ~= CLAIMED and state ~= RELEASED then
  return 0
end
redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
if state == CLAIMED then
  redis.call('HSET', entry, 'state', RELEASED, 'since', whole(now))
end
redis.call('HSET', entry, 'retries', ARGV[3])
if ARGV[4] == '1' then
  redis.call('HDEL', entry, 'deaths')
end
forget(entry, ARGV[5])
return 1
