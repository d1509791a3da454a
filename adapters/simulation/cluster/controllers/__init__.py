"""What kube-controller-manager and its like do in the virtual cluster: one module a controller.

A controller listens to the API server and acts on the clock. Imports the API server, not another controller's inside.
"""
