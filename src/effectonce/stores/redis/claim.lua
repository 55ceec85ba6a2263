-- Grants a claim as `domain.claims.admit` says.
-- KEYS  1 entry  2 claims
-- ARGV  1 attempt  2 key  3 identity  4 task  5 args  6 lease (us)  7 keep (ms, '' for ever)  8 retries
--       9 max_takeovers  10 reenter ('' for none)  11 recurs (1 or 0)  12 holds (1 or 0)
-- Answers {1, fence, takeover, deaths, attempts} for a grant, else {0, the entry as told}.
local entry, claims = KEYS[1], KEYS[2]
local attempt, args, lease, most = ARGV[1], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[9])
local fence, takeover, deaths, attempts = now, 0, 0, 1

local old = told(entry)
if old then
  local state, left = old[1], tonumber(old[17])
  fence, deaths, attempts = math.max(old[2] + 1, now), tonumber(old[8] or 0), old[9] + 1
  if state == CLAIMED and old[3] == attempt and left > 0 then
    return {1, old[2], deaths > 0 and 1 or 0, deaths, attempts - 1}
  end
  local reentry = state == CLAIMED and old[2] == ARGV[10]
  local free = state == RELEASED and deaths < most
  local recurrence = ARGV[11] == '1' and (state == COMPLETED or state == FAILED) and old[5] ~= ARGV[3]
  local same = old[7] == '' or args == '' or old[7] == args
  if state == CLAIMED and left <= 0 and same and deaths + 1 < most and not reentry then
    takeover, deaths = 1, deaths + 1
  elseif recurrence then
    deaths = 0
  elseif not (reentry or free) then
    return {0, old}
  end
end

redis.call('ZADD', claims, whole(now + 2 * lease), member(entry))  -- first: a server that is full refuses here
redis.call('HDEL', entry, 'deaths', 'retries', 'continued', 'handed', 'kept', 'result', 'holds',
  'follower')  -- steps stay
redis.call('PERSIST', entry)
redis.call('HSET', entry, 'state', CLAIMED, 'fence', whole(fence), 'attempt', attempt, 'key', ARGV[2],
  'identity', ARGV[3], 'task', ARGV[4], 'args', args, 'attempts', attempts, 'since', whole(now),
  'ends', whole(now + lease), 'lease', ARGV[6], 'keep', ARGV[7])
if deaths > 0 then
  redis.call('HSET', entry, 'deaths', deaths)
end
if ARGV[12] == '1' then
  redis.call('HSET', entry, 'holds', 1)
end
if ARGV[8] ~= '0' then
  redis.call('HSET', entry, 'retries', ARGV[8])
end
return {1, whole(fence), takeover, deaths, attempts}
