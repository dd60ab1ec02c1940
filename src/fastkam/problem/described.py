"""What a Problem can be known by without loading what makes one."""


class Described:
    """The base class of `Problem`, which loads much of scipy."""
