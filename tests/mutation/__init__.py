"""Mutation testing: small changes of the code, one at a time, that the tests are to notice.

All mutants stand in one build (mutant schemata: Untch, R. H., Offutt, A. J. and Harrold, M. J.
(1993). Mutation analysis using mutant schemata. ISSTA '93, 139-148): an expression E with the
change E' becomes ``E' if fk_mutated(k) else E``. Python and Cython are changed in their syntax
trees, the C code by statement. A file that all modules map says which mutant is on, and which have
been reached, so a mutant is tried by exactly the tests that run the changed place.
"""
