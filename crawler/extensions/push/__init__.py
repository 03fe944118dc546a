"""Push notifications to a daemon: WebSub and IndexNow."""
