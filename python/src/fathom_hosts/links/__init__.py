"""What connects the router to the agents: one module for each way."""
