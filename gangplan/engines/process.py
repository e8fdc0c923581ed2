"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from gangplan.engines.held import TASKS_AHEAD, get_worker_value, set_worker_value
from gangplan.errors import ToolError
from gangplan.interrupts import delay_interrupts, release_interrupts

Worker = TypeVar("Worker")
Task = TypeVar("Task")
TaskReturn = TypeVar("TaskReturn")


class ProcessEngine:
    """A pool of worker processes; each is set up once."""

    name = "process"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self,
        call: Callable[[Worker, Task], TaskReturn],
        tasks: Sequence[Task],
        worker: Worker,
        named: Callable[[Task], str] = repr,
    ) -> Generator[TaskReturn, None, None]:
        """Run the tasks as `Engine` says. When a worker dies, retry each task in flight in a new worker.

        Raises ToolError, which names the task, if that worker dies too.
        """
        left = deque(tasks)
        while left:
            try:
                yield from self._ordered(call, left, worker)
            except BrokenProcessPool:
                # The death does not show its cause: any task in flight may have killed the worker.
                for _ in range(min(len(left), self.workers * TASKS_AHEAD)):
                    yield self._alone(call, left[0], worker, named)
                    left.popleft()

    def _ordered(
        self, call: Callable[[Worker, Task], TaskReturn], left: deque[Task], worker: Worker
    ) -> Iterator[TaskReturn]:
        """Yield results in order; a task with a result leaves `left`. Raises BrokenProcessPool if a worker
        died.

        Only as many tasks are in flight as the workers can start soon, so that results do not pile up if the
        first task takes long.
        """
        # A shell that starts a command in the background makes it ignore interrupts.
        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with _open_worker_process_pool(min(self.workers, len(left)), worker) as pool:
            tasks = iter(tuple(left))
            under_way: deque[Future[TaskReturn]] = deque()
            while left:
                # Python loses an interrupt that arrives while it forks, so delay interrupts until all workers
                # exist.
                with delay_interrupts():
                    while len(under_way) < self.workers * TASKS_AHEAD and len(under_way) < len(left):
                        under_way.append(
                            pool.submit(
                                partial(_run_task_in_worker_process, call, is_interruptible), next(tasks)
                            )
                        )
                result = under_way.popleft().result()
                left.popleft()
                yield result

    def _alone(
        self,
        call: Callable[[Worker, Task], TaskReturn],
        task: Task,
        worker: Worker,
        named: Callable[[Task], str],
    ) -> TaskReturn:
        try:
            [result] = self._ordered(call, deque([task]), worker)
        except BrokenProcessPool:
            raise ToolError(
                f"a worker process died twice at {named(task)} (killed, or out of memory); "
                "nothing was written",
                "Try again with --engine serial, or without these files.",
            ) from None
        return result


@contextmanager
def _open_worker_process_pool(workers: int, worker: object) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of workers that are set up. They end with the command, however it ends."""
    # fork shares what is already imported; if it does not exist, the default start method is used.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(
        workers, context, initializer=_prepare_worker_process, initargs=(worker,)
    ) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)  # workers of an ended command must not continue to write
            raise


def _prepare_worker_process(worker: object) -> None:
    """Set up a worker: release the signals that were blocked while it was created, and store what it works
    with.

    Ctrl-C also reaches the workers of a terminal. A worker that waits for a task ignores it, and the command
    ends the worker: otherwise it would show a traceback, and if it died it could leave a lock that the others
    wait for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    release_interrupts()
    set_worker_value(worker)


def _run_task_in_worker_process(
    call: Callable[[Worker, Task], TaskReturn], is_interruptible: bool, task: Task
) -> TaskReturn:
    """Run a task; an interrupt ends the task if it would end the command."""
    if is_interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return call(get_worker_value(), task)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
