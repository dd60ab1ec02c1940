
PARTS = ()
MODULES = ("figure5", "glass", "contours")
