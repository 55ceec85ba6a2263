-- Gives each claim that still holds its entry a new lease from now; one whose lease has ended gets none.
-- KEYS  entry and claims of the first, of the second, ...
-- ARGV  attempt, fence and lease (us) of the first, of the second, ...
-- Answers the attempts that hold.
local holding = {}
for i = 1, #KEYS / 2 do
  local entry, claims = KEYS[2 * i - 1], KEYS[2 * i]
  local attempt, fence, lease = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local state, ends = held(entry, attempt, fence)
  if state == CLAIMED and ends > now then
    redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
    redis.call('HSET', entry, 'ends', whole(now + lease), 'lease', lease)
    redis.call('ZADD', claims, whole(now + 2 * lease), member(entry))
    holding[#holding + 1] = attempt
  end
end
return holding
