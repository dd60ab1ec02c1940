def measure(contest, options):
    return ""
