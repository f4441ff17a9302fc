"""What a waiting user is told: where the job stands, what holds it back, what is used up."""
