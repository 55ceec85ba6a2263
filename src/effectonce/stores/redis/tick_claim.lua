-- Claims ticks under a term: each later than all that its entry has had, or still unmarked.
-- KEYS  1 seat  2 last: entry -> row  3 unmarked: entry:instant -> row  4 recent rows
-- ARGV  1 fence  2 holder  3 how far ahead (us)  4 how many recent rows are kept
--       then of each tick: entry, instant, state, missed, following, name
-- A row is instant|state|fence|at|missed|following|name.
-- Answers one number for each tick, as `domain.ticks.Claimed`.
local seat, last, unmarked, recent = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local CLAIMED = '2'
local answers = {}
local standing = stands(seat, ARGV[1], ARGV[2])
for i = 5, #ARGV, 6 do
  local entry, instant, state = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local open = entry .. ':' .. instant
  local had = redis.call('HGET', last, entry)
  local latest = had and string.match(had, '^(%-?%d+)|')
  local answer = 1
  if not standing then
    answer = 3
  elseif redis.call('HEXISTS', unmarked, open) == 0 then
    if tonumber(instant) > now + ARGV[3] then
      answer = 2
    elseif latest and tonumber(instant) <= tonumber(latest) then
      answer = 0
    end
  end
  if answer == 1 then
    local row = table.concat({instant, state, ARGV[1], whole(now), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]}, '|')
    if not latest or tonumber(instant) >= tonumber(latest) then
      redis.call('HSET', last, entry, row)
    end
    if state == CLAIMED then
      redis.call('HSET', unmarked, open, row)
    else
      redis.call('HDEL', unmarked, open)
    end
    redis.call('LPUSH', recent, row)
  end
  answers[#answers + 1] = answer
end
redis.call('LTRIM', recent, 0, ARGV[4] - 1)
return answers
