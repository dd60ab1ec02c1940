"""Is the first answer right, or does it say that it is not?"""
