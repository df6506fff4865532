"""A session: its plan, its run, its events, and what resumes or follows one."""
