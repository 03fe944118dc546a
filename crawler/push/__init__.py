"""What others push to a daemon: WebSub and IndexNow."""
