"""The optimal step of a random walk on N(0, I) in d dimensions, for large d: OPTIMAL / sqrt(d).

Roberts, G. O., Gelman, A. and Gilks, W. R. (1997). Weak convergence and optimal scaling of random
walk Metropolis algorithms. Annals of Applied Probability 7, 110-120.
"""

OPTIMAL = 2.38
