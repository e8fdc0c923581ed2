"""What a child that a test sends a signal to must begin with.

Whoever starts the tests in the background of a shell that is not interactive hands them an ignored SIGINT,
nohup an ignored SIGHUP, and children inherit what is ignored (POSIX, sigaction and execve).
"""

LISTENING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
)
