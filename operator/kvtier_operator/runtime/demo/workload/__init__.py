"""What the demo's engines are asked: a model, prompts, and how long they may be on this machine."""
