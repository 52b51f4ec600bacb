/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "calls.h"

/* The shortest time between two calls of the interpreter. Each call needs the interpreter's lock, and waits for other
 * threads of Python. */
static constexpr std::chrono::milliseconds between_reports(20);

Calls::Calls() : log{&Calls::write, this}, progress{&Calls::report, this} {}

void Calls::begin(nb::handle listener)
{
    this->listener = listener;
    exception = nullptr;
    start = std::chrono::steady_clock::now();
    last_report = {};
}

Calls::Outcome Calls::end(lr_status status)
{
    Outcome outcome;
    std::lock_guard<std::mutex> alone(writing);
    if (status == LR_OK && exception == nullptr && messages.empty()) return outcome;
    outcome.is_eventful = true;
    outcome.status = status;
    if (status != LR_OK) {
        lr_status last;
        outcome.error = lr_last_error(&last);
        if (last != LR_OK) outcome.status = last;
    }
    outcome.messages = std::exchange(messages, {});
    outcome.exception = std::exchange(exception, nullptr);
    return outcome;
}

void Calls::settle(Outcome &outcome)
{
    if (!outcome.messages.empty()) {
        static const char *const methods[] = {"debug", "info", "warning", "error"};
        nb::object logger = nb::module_::import_("logging").attr("getLogger")("loraster");
        for (const Message &message : outcome.messages)
            logger.attr(methods[message.level])("%s", nb::str(message.sentence.c_str(), message.sentence.size()));
    }
    if (outcome.exception != nullptr) std::rethrow_exception(outcome.exception);
    if (outcome.status == LR_OK) return;
    throw Failure{outcome.status, outcome.error};
}

void Calls::write(void *user, lr_log_level level, lr_status, const char *sentence)
{
    Calls *calls = static_cast<Calls *>(user);
    if (level == LR_LOG_ERROR) return; /* an error becomes an exception with the same sentence (lr_last_error) */
    std::lock_guard<std::mutex> alone(calls->writing);
    calls->messages.push_back({level, sentence});
}

bool Calls::report(void *user, const char *what, double done, double total)
{
    Calls *calls = static_cast<Calls *>(user);
    const auto now = std::chrono::steady_clock::now();
    if (now - calls->last_report < between_reports && done < total) return calls->exception == nullptr;
    calls->last_report = now;
    nb::gil_scoped_acquire locked;
    try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (calls->listener.is_valid() && !calls->listener.is_none()) {
            calls->listener(what, done, total);
        } else if (!calls->is_told_of_long_work) {
            const double seconds = std::chrono::duration<double>(now - calls->start).count();
            nb::object unheard = nb::module_::import_("loraster._progress").attr("unheard");
            calls->is_told_of_long_work = nb::cast<bool>(unheard(what, done, total, seconds));
        }
    } catch (...) {
        calls->keep_exception();
    }
    return calls->exception == nullptr;
}
