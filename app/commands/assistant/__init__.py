"""What an assistant may do through the Model Context Protocol: watch, tune and report; never set a real board.

`protocol` speaks JSON-RPC on standard input and output, `tools` is the table of what can be called, `allowed` decides
which files and boards, `sessions` runs sessions in processes of their own.
"""
