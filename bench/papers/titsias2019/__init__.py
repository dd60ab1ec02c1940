"""Titsias and Dellaportas (2019), Gradient-based adaptive Markov chain Monte Carlo."""

PARTS = ("neal", "australian", "heart", "pima", "ripley", "german", "caravan")
MODULES = ("figure1", "digits", "figures")
