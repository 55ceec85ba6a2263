-- Tells the steps of an effect.
-- KEYS  1 entry
-- Answers their fields and what stands in them, one after the other.
return steps(KEYS[1])
