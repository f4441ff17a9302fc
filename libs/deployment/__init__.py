"""What an installation needs beside the services: its servers' users, its secrets, and its gateway's configuration."""
