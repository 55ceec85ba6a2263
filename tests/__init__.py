"""The tests: one folder for each kind of proof, one package for the servers they run against."""
