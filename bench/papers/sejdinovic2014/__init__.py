
PARTS = ()
MODULES = ("figure5", "glass", "figure4", "contours")
