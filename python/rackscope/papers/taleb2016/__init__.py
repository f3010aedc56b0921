"""Taleb, Ibrahim, Antoniu and Cortes 2016: RAMCloud over Infiniband and over TCP, as a closed network with power.

``quoted`` has the figures of its text, ``contradiction`` what these say of each other without any model, ``model`` the
network and its fit, ``page`` all of it side by side.
"""
