
PARTS = ()
MODULES = ("figure5",)
