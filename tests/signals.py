"""The first lines of a child process that a test sends a signal to.

When the tests are started in the background of a shell that is not interactive, they inherit an ignored
SIGINT, and from nohup an ignored SIGHUP; children inherit ignored signals (POSIX, sigaction and execve).
"""

LISTENING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
)
