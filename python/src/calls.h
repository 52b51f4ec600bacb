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

/* Calls of the library. A call runs without the interpreter's lock. Errors become exceptions, other messages go to
 * Python's logging, and Ctrl-C ends the call. */

/* A failure that becomes a Python exception: ValueError for LR_USAGE and LR_BAD_INPUT, loraster.NoDeviceError for
 * LR_NO_DEVICE, and loraster.Error for any other status. */
struct Failure {
    lr_status status;
    std::string sentence;
};

/* The log and the progress of one object of the library, which must be destroyed before them. Only one call runs at a
 * time, because Calls::run locks a mutex. */
class Calls
{
  public:
    Calls();
    Calls(const Calls &) = delete;
    Calls &operator=(const Calls &) = delete;

    /* Runs `work`, which returns an lr_status and runs without the interpreter's lock. `listener`: None, or a function
     * of (what, done, total). With None, long work is mentioned once (loraster._progress.unheard). Throws the
     * listener's exception, KeyboardInterrupt, or Failure. */
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

    /* Calls a constructor of the library, which returns a pointer or NULL, like run(). */
    template <class Make> auto make(Make work, nb::handle listener = nb::handle())
    {
        decltype(work()) made = nullptr;
        run([&] { return (made = work()) != nullptr ? LR_OK : LR_FAILED; }, listener);
        return made;
    }

    /* Waits for calls in other threads. No new call begins until the lock is released. */
    std::unique_lock<std::mutex> hold() { return std::unique_lock<std::mutex>(mutex); }

    /* Stores an exception until the end of the call: in a catch block that of a callback. For an exception of Python
     * the interpreter's lock is needed. */
    void keep_exception(std::exception_ptr kept = std::current_exception()) { exception = kept; }

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
    std::mutex writing; /* for messages, which any thread of the library may write */
    std::vector<Message> messages;
    std::exception_ptr exception;
    nb::handle listener;
    std::chrono::steady_clock::time_point start, last_report;
    bool is_told_of_long_work = false;
};

#endif
