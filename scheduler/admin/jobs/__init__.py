"""Jobs in the admin: list, page, form, actions."""
