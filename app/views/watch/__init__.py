"""The page Watch: live traces, channels, boards, meters."""
