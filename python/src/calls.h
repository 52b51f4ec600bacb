/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PYTHON_CALLS_H
#define LR_PYTHON_CALLS_H

#include <lr/log.h>
#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

/* Calls of the library: the interpreter's lock is given up while they run, what they log becomes an exception or a
 * record of Python's logging, and Ctrl-C ends them. */

/* A failure that becomes a Python exception: ValueError for LR_USAGE and LR_BAD_INPUT, loraster.NoDeviceError,
 * else loraster.Error. */
struct Failure {
    lr_status status;
    std::string sentence;
};

/* What one object of the library reports during its calls. The object's log and progress are those of this one, which
 * outlives it. Calls come one at a time: Calls::run locks. */
class Calls
{
  public:
    Calls();
    Calls(const Calls &) = delete;
    Calls &operator=(const Calls &) = delete;

    /* Runs work, which returns an lr_status and holds no lock of the interpreter. `listener` is None or a function of
     * (what, done, total); with None, work that takes long is told of once (loraster._progress.unheard). Throws what
     * the listener threw, KeyboardInterrupt, or Failure. */
    template <class Work> void run(Work work, nb::handle listener = nb::handle())
    {
        Outcome outcome;
        {
            nb::gil_scoped_release unlocked;
            std::lock_guard<std::mutex> alone(mutex);
            begin(listener);
            const lr_status status = work();
            outcome = end(status);
        }
        if (outcome.is_eventful) settle(outcome);
    }

    /* run() for a constructor of the library, which returns a pointer or NULL. */
    template <class Make> auto make(Make work, nb::handle listener = nb::handle())
    {
        decltype(work()) made = nullptr;
        run([&] { return (made = work()) != nullptr ? LR_OK : LR_FAILED; }, listener);
        return made;
    }

    /* Waits for the calls of other threads, and keeps them waiting. */
    std::unique_lock<std::mutex> hold() { return std::unique_lock<std::mutex>(mutex); }

    /* Keeps an exception of a callback for the end of the call. To be called in a catch block; if the exception is
     * Python's, with the interpreter's lock. */
    void keep_exception() { exception = std::current_exception(); }

    lr_log log;
    lr_progress progress;

  private:
    struct Message {
        lr_log_level level;
        std::string sentence;
    };
    struct Outcome {
        bool is_eventful = false;
        lr_status status = LR_OK;
        std::string error;
        std::vector<Message> messages;
        std::exception_ptr exception;
    };

    void begin(nb::handle listener);
    Outcome end(lr_status status);
    static void settle(Outcome &outcome);
    static void write(void *user, lr_log_level level, lr_status status, const char *sentence);
    static bool report(void *user, const char *what, double done, double total);

    std::mutex mutex;
    std::mutex writing; /* the library writes from any of its threads */
    std::vector<Message> messages;
    std::exception_ptr exception;
    nb::handle listener;
    std::chrono::steady_clock::time_point start, last_report;
    bool is_told_of_long_work = false;
};

#endif
