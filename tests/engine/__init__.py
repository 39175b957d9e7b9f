"""Proofs of the engine: each row of DESIGN section 4 with its loser, races, kills, and the stories of the first issue."""
