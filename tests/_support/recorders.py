"""A callback of scikit-learn's protocol that writes down what it is told."""

import json
import os


class Recorder:
    """Appends every event to a file, so that other processes can take part.

    Parameters
    ----------
    path : path
    stop_after : int, optional
        Ask to stop at the end of the leaf with this number, counted from 1.
    """

    max_propagation_depth = None

    def __init__(self, path, stop_after=None):
        self.path, self.stop_after, self.leaves = str(path), stop_after, 0

    def _write(self, event, context):
        names = []
        while context is not None:
            names.append((context.estimator_name, context.task_name, context.task_id))
            context = context.parent
        line = json.dumps([os.getpid(), event, names[::-1]])
        with open(self.path, "a") as file:
            file.write(line + "\n")

    def setup(self, estimator, context):
        self._write("setup", context)

    def teardown(self, estimator, context):
        self._write("teardown", context)

    def on_fit_task_begin(self, estimator, context):
        self._write("begin", context)

    def on_fit_task_end(self, estimator, context):
        self._write("end", context)
        if context.max_subtasks == 0 and context.parent is not None:
            self.leaves += 1
            return self.leaves == self.stop_after
        return False


class Watcher(Recorder):
    """A recorder that asks for the fitted estimator at the end of every task."""

    def __init__(self, path, stop_after=None):
        super().__init__(path, stop_after)
        self.fitted = []

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.fitted.append(fitted_estimator)
        return super().on_fit_task_end(estimator, context)


def events(path):
    """What a recorder has written: lists [process, event, names from the root]."""
    with open(path) as file:
        return [json.loads(line) for line in file]


def check_nested(log):
    """Begins and ends match, the last begun ends first; returns the paths ended."""
    stacks, ended = {}, []
    for process, event, names in log:
        stack = stacks.setdefault(process, [])
        if event == "begin":
            assert not stack or stack[-1] == names[: len(stack[-1])]
            stack.append(names)
        elif event == "end":
            assert stack.pop() == names
            ended.append(names)
    assert not any(stacks.values())
    return ended
