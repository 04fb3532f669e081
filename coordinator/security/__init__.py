"""Authorization: principals, users, ACLs. Pure but for `store`: no socket, and time is an argument."""
