"""What an installation needs beside the services: its servers' users, its secrets, and the gateway as a process."""
