"""What is pushed to a daemon: WebSub notifications and IndexNow-style pings.

All of it is a hint: it says where to look, and Freshet looks for itself.
"""
