"""Set-up in a browser: the App's registration, its credentials, the first queue."""
