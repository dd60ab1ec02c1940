"""A recipe: a call that makes a target, which can be sent to other processes by name."""

from __future__ import annotations

from importlib import import_module

from fastkam.arguments import shown


class TargetRecipe:
    """A call that makes a target, in this process or in another.

    It is accepted wherever a target is. Compiled functions are addresses, which are invalid in
    another process: with ``executor=`` each worker makes its own target once, by this recipe.

    Parameters
    ----------
    factory : str or callable
        ``"module:function"``, or a picklable function. It returns a target in any form that
        `as_target` takes.
    *args, **kwargs
        Its arguments, which must be picklable.

    Examples
    --------
    >>> import fastkam as fk
    >>> recipe = fk.TargetRecipe("mymodel:density", "data.csv")
    >>> recipe
    TargetRecipe('mymodel:density', 'data.csv')
    """

    def __init__(self, factory, *args, **kwargs):
        if isinstance(factory, str):
            module, colon, function = factory.partition(":")
            if not (module and colon and function):
                raise ValueError(f'factory must be like "module:function", not {shown(factory)}')
        elif not callable(factory):
            raise TypeError('factory must be "module:function" or a function, not '
                            f'{shown(factory)}')
        self.factory, self.args, self.kwargs = factory, args, kwargs

    def __call__(self):
        """Call the factory; return what it makes."""
        factory = self.factory
        if isinstance(factory, str):
            module, _, function = factory.partition(":")
            factory = import_module(module)
            for name in function.split("."):
                factory = getattr(factory, name)
        try:
            return factory(*self.args, **self.kwargs)
        except Exception as error:
            error.add_note("raised by the factory of a TargetRecipe")
            raise

    def __repr__(self):
        parts = [repr(value) for value in (self.factory, *self.args)]
        parts += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"TargetRecipe({', '.join(parts)})"
