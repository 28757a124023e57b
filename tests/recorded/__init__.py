"""What GitHub really sent and answered, replayed to the service and compared with the stand-in."""
