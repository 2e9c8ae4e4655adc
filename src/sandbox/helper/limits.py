"""Every bound that the helper keeps, in bytes, counts or seconds."""

KIB, MIB = 1024, 1024 * 1024

# Frames and calls.
MAX_HEADER = MIB
MAX_REQUEST_BODY = 64 * MIB
MAX_IN_FLIGHT = 256
WORKERS = 16
THREAD_STACK = MIB

# What commands and cells print.
DEFAULT_OUTPUT = 128 * KIB
MAX_OUTPUT = 4 * MIB
MAX_SPILL = 8 * MIB

# Files.
MAX_READ = 128 * KIB
MAX_HASHED = 256 * MIB
MAX_WRITE = 64 * MIB
MAX_EDIT = 16 * MIB
MAX_NAMES = 10000
NAMES_BUDGET = 900 * KIB

# The interpreter. Its own half of these stands in interpreter.py.
TEXT_LIMIT = 32 * KIB
VAR_LIMIT = 16 * KIB
VARS_BUDGET = 512 * KIB
MAX_KERNEL_REPLY = 8 * MIB
MAX_FIGURES, MAX_FIGURE = 20, 10 * MIB

# The way out.
FORWARDED = 64
FORWARD_BUFFER = 64 * KIB

# Ends.
KILL_GRACE = 2.0
LEFTOVER_GRACE = 0.1
UNKILLABLE = 5.0
