"""fastkam inside other packages: one module for each, which imports that package.

``import fastkam.hosts.emcee`` needs emcee, and so on; nothing here is imported by fastkam itself.
"""
