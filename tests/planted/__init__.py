"""Planted mistakes: each is put into a copy of the product, where the tests that it names must die.

A test that no mistake can kill proves nothing. `python -m tests.planted` plants all of them and prints who noticed.
"""
