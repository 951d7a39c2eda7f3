"""Parts for other packages and services, each off until a project asks for it."""
