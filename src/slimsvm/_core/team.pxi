# Threads that wait for work without the interpreter's lock: to wake them takes a few microseconds.

cdef extern from "pythread.h" nogil:
    ctypedef void *PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock, int)
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int)
    void PyThread_release_lock(PyThread_type_lock)

#: threads that a woken thread wakes in turn; more of them: the first one begins later
cdef enum:
    WOKEN = 2
#: microseconds after which Ctrl-C is looked for; more of them delay it
cdef enum:
    PATIENCE = 20000

ctypedef void (*Job)(void *) noexcept nogil


cdef class Team:
    """Threads for one job at a time. A thread that comes late, when the job has ended, does not take part.

    Each thread calls `serve` once. A team lives as long as the process, and so do its threads.
    """

    cdef PyThread_type_lock door, ended  # around the fields below, and until the last thread has left the job
    cdef PyThread_type_lock *wake
    cdef int *parked
    cdef int asleep, wanted, inside
    cdef bint open, busy, waiting, left  # `left`: the caller did not wait for the threads in the job
    cdef Job job
    cdef void *what
    cdef object work
    cdef readonly int count

    def __cinit__(self, int count):
        cdef int k
        if count < 1:
            raise ValueError(f"a team of {count} threads")
        self.count = count
        self.door, self.ended = PyThread_allocate_lock(), PyThread_allocate_lock()
        self.wake = <PyThread_type_lock *>calloc(count, sizeof(PyThread_type_lock))
        self.parked = <int *>calloc(count, sizeof(int))
        if self.door == NULL or self.ended == NULL or self.wake == NULL or self.parked == NULL:
            raise MemoryError
        PyThread_acquire_lock(self.ended, 1)
        for k in range(count):
            self.wake[k] = PyThread_allocate_lock()
            if self.wake[k] == NULL:
                raise MemoryError
            PyThread_acquire_lock(self.wake[k], 1)

    def serve(self, int number):
        """Work for the team for ever, as its thread of this number."""
        if not 0 <= number < self.count:
            raise IndexError(f"thread {number} of {self.count}")
        with nogil:
            PyThread_acquire_lock(self.door, 1)
            self.parked[self.asleep] = number
            self.asleep += 1
            PyThread_release_lock(self.door)
            while True:
                PyThread_acquire_lock(self.wake[number], 1)
                self.turn(number)

    def run(self, work, there, int helpers):
        """Call work() here and there(), which raises nothing, in up to so many threads; wait for them unless work() raises."""
        cdef bint waits
        if not self.begin(call, <void *>there, helpers):
            return work()
        try:
            work()
            waits = self.close()
            while waits:
                with nogil:
                    waits = PyThread_acquire_lock_timed(self.ended, PATIENCE, 0) == 0
                PyErr_CheckSignals()
        except BaseException:
            self.work = there  # for threads that are still in the job
            self.leave()
            raise
        self.busy = False

    cdef void turn(self, int number) noexcept nogil:
        """Take part in the job, if it has not ended, and park again."""
        cdef int woken[WOKEN]
        cdef int count = 0
        cdef Job job
        cdef void *what
        PyThread_acquire_lock(self.door, 1)
        if self.open:
            self.inside += 1
            job, what = self.job, self.what
            count = self.next_to_wake(woken)
            PyThread_release_lock(self.door)
            self.wake_up(woken, count)
            job(what)
            PyThread_acquire_lock(self.door, 1)
            self.inside -= 1
        self.parked[self.asleep] = number
        self.asleep += 1
        if not self.inside and self.waiting:
            self.waiting = False
            PyThread_release_lock(self.ended)
        elif not self.inside and self.left:
            self.left = self.busy = False
        PyThread_release_lock(self.door)

    cdef bint begin(self, Job job, void *what, int helpers) noexcept nogil:
        """Let up to so many threads take part in a job; the caller does so too. `finish` follows if this returns True.

        It returns False if the team is busy with another thread's job: the caller is alone then.
        """
        cdef int woken[WOKEN]
        cdef int count
        if helpers < 1:
            return False
        PyThread_acquire_lock(self.door, 1)
        if self.busy:
            PyThread_release_lock(self.door)
            return False
        self.busy = self.open = True
        self.job, self.what, self.wanted = job, what, helpers
        count = self.next_to_wake(woken)
        PyThread_release_lock(self.door)
        self.wake_up(woken, count)
        return True

    cdef bint close(self) noexcept nogil:
        """Let no further thread take part; return whether the caller must wait for `ended`."""
        cdef bint waits
        PyThread_acquire_lock(self.door, 1)
        self.open, self.wanted = False, 0
        self.waiting = waits = self.inside > 0
        PyThread_release_lock(self.door)
        return waits

    cdef void finish(self) noexcept nogil:
        """End the job; return when all threads have left it."""
        if self.close():
            PyThread_acquire_lock(self.ended, 1)
        self.busy = False

    cdef void leave(self) noexcept nogil:
        """End the job without waiting for the threads in it; the last of them ends it."""
        PyThread_acquire_lock(self.door, 1)
        self.open, self.wanted = False, 0
        self.waiting, self.left = False, self.inside > 0
        self.busy = self.left
        PyThread_release_lock(self.door)
        PyThread_acquire_lock(self.ended, 0)  # where the last one left just now

    cdef int next_to_wake(self, int *woken) noexcept nogil:
        """Take sleeping threads off the list, a few of those that are wanted; return how many."""
        cdef int count = 0
        while count < WOKEN and self.wanted > 0 and self.asleep > 0:
            self.asleep -= 1
            self.wanted -= 1
            woken[count] = self.parked[self.asleep]
            count += 1
        return count

    cdef void wake_up(self, const int *woken, int count) noexcept nogil:
        cdef int k
        for k in range(count):
            PyThread_release_lock(self.wake[woken[k]])


cdef void call(void *work) noexcept nogil:
    """Call a Python function that raises nothing."""
    with gil:
        (<object>work)()


cdef struct Shared:
    # the beginning of a job: strips of `size` of n rows, which threads take one after the other by calls of `work`
    int64_t next, n, size
    void (*work)(Shared *, int64_t) noexcept nogil


ctypedef void (*Work)(Shared *, int64_t) noexcept nogil


cdef class Strips:
    """Strips of `size` of n rows, which threads take one after the other. Ctrl-C is looked for after `turns` strips."""

    cdef readonly int64_t n, size, turns

    def __cinit__(self, int64_t n, int64_t size, int64_t turns=1):
        if n < 0 or size < 1 or turns < 1:
            raise ValueError(f"strips of {size} of {n} rows")
        self.n, self.size, self.turns = n, size, turns

    cdef int share(self, Work work, Shared *job, Team team, int helpers) except -1:
        """Call work(job, most) here and in threads until no strip is left; it takes `most` strips, or all that are left."""
        cdef bint shared = False
        job.next, job.n, job.size, job.work = 0, self.n, self.size, work
        if team is not None:
            shared = team.begin(whole_job, job, helpers)
        try:
            while job.next < job.n:
                with nogil:
                    work(job, self.turns)
                PyErr_CheckSignals()  # in the main thread
        finally:
            job.next = job.n
            if shared:
                with nogil:
                    team.finish()
        return 0


cdef void whole_job(void *job) noexcept nogil:
    """Work through all strips that are left."""
    (<Shared *>job).work(<Shared *>job, (<Shared *>job).n)
