"""Real beats: who leads, and what is sent."""
