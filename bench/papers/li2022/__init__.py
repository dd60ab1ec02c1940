
PARTS = ("two_mode", "five_component", "mixture_32d")
MODULES = ("bias", "figures")
