"""What the client, the service and the dashboard share. Standard library only; imports nothing of ours."""
