/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "report.h"

#include "advice.h"
#include "stop.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double report_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *report_duration(char text[32], double seconds)
{
    const long whole = lround(fmin(fmax(seconds, 0), 1e8));
    if (whole < 60)
        snprintf(text, 32, "%ld s", whole);
    else if (whole < 3600)
        snprintf(text, 32, "%ld min %ld s", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%ld h %ld min", whole / 3600, whole / 60 % 60);
    return text;
}

void report_clear(struct report *report)
{
    if (report->line_drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        report->line_drawn = false;
    }
}

/* Whether this process is one of several, and not the one that tells how it goes. */
static bool is_silent(const struct report *report)
{
    return report->ranks.size > 1 && report->ranks.rank != 0;
}

static void hold_error(struct report_ranks *ranks, const char *sentence)
{
    if (ranks->held[0] == '\0') snprintf(ranks->held, sizeof(ranks->held), "%s", sentence);
}

static void write_now(struct report *report, lr_log_level level, lr_status status, const char *sentence)
{
    static const char *const words[] = {"", "", "warning: ", "error: "};
    if (level == LR_LOG_ERROR) report->status = status;
    if (level == LR_LOG_ERROR && report->ranks.size > 1) {
        hold_error(&report->ranks, sentence);
        return;
    }
    if (is_silent(report)) return;
    if ((level == LR_LOG_DEBUG && !report->verbose) || (level == LR_LOG_INFO && report->quiet)) return;
    report_clear(report);
    if (report->verbose) fprintf(stderr, "%8.3f s ", report_seconds() - report->start_s);
    fprintf(stderr, "loraster: %s%s\n", words[level], sentence);
}

/* Some work goes on beside the main thread. */
static void write_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct report *report = user;
    char text[ADVICE_BYTES];
    flockfile(stderr);
    write_now(user, level, status, advice_on(report->args, status, sentence, text));
    funlockfile(stderr);
}

/* Whether a line is to be drawn now. */
static bool is_due(const struct report *report)
{
    return report->terminal && !report->quiet && report_seconds() - report->drawn_s > 0.2;
}

void report_line(struct report *report, const char *line)
{
    flockfile(stderr);
    if (is_due(report)) {
        fprintf(stderr, "\r\033[K%s", line);
        fflush(stderr);
        report->line_drawn = true;
        report->drawn_s = report_seconds();
    }
    funlockfile(stderr);
}

static void draw_progress(struct report *report, double done, double total, double now)
{
    const double elapsed = now - report->phase_start_s;
    char left[32];
    fprintf(stderr, "\r\033[K%s: %.0f %%", report->phase, 100 * done / total);
    if (elapsed > 1 && done > 0) fprintf(stderr, ", %s left", report_duration(left, elapsed * (total - done) / done));
    fflush(stderr);
    report->line_drawn = true;
    report->drawn_s = now;
}

static bool show_progress(void *user, const char *what, double done, double total)
{
    struct report *report = user;
    if (report->terminal && !report->quiet && total > 0) {
        const double now = report_seconds();
        if (strncmp(report->phase, what, sizeof(report->phase) - 1) != 0 || done < report->last_done) {
            snprintf(report->phase, sizeof(report->phase), "%s", what);
            report->phase_start_s = now;
        }
        report->last_done = done;
        if (now - report->drawn_s > 0.2) {
            flockfile(stderr);
            draw_progress(report, done, total, now);
            funlockfile(stderr);
        }
    }
    return !stop_is_asked();
}

void report_init(struct report *report)
{
    *report = (struct report){.start_s = report_seconds()};
    report->log = (lr_log){write_sentence, report};
    report->progress = (lr_progress){show_progress, report};
    report->terminal = isatty(STDERR_FILENO) == 1;
}

static void say(struct report *report, lr_log_level level, lr_status status, const char *format, va_list list)
{
    char sentence[1024];
    vsnprintf(sentence, sizeof(sentence), format, list);
    report->log.write(report->log.user, level, status, sentence);
}

void report_info(struct report *report, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(report, LR_LOG_INFO, LR_OK, format, list);
    va_end(list);
}

void report_warn(struct report *report, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(report, LR_LOG_WARNING, LR_OK, format, list);
    va_end(list);
}

lr_status report_error(struct report *report, lr_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(report, LR_LOG_ERROR, status, format, list);
    va_end(list);
    return status;
}

lr_status report_reason(const struct report *report)
{
    if (report->status != LR_OK) return report->status;
    return stop_is_asked() ? LR_CANCELLED : LR_FAILED;
}

void report_join_ranks(struct report *report, int rank, int size)
{
    report->ranks = (struct report_ranks){.rank = rank, .size = size};
    report->terminal = report->terminal && rank == 0;
}

void report_name_rank(struct report *report, int rank, int size, const char *machine)
{
    report->ranks.rank = rank;
    report->ranks.size = size;
    snprintf(report->ranks.name, sizeof(report->ranks.name), "rank %d of %d on %.60s: ", rank, size, machine);
}

/* Of several processes one says why. */
static void tell_for_ranks(struct report *report, lr_status status)
{
    struct report_ranks *ranks = &report->ranks;
    const bool is_stopped = status == LR_CANCELLED && ranks->rank == 0 && !ranks->has_told;
    if (ranks->rank == ranks->speaker && ranks->held[0] != '\0' && status != LR_CANCELLED)
        fprintf(stderr, "loraster: error: %s%s\n", ranks->name, ranks->held);
    else if (is_stopped)
        fputs("loraster: stopped\n", stderr);
    fflush(stderr);
    ranks->held[0] = '\0';
    ranks->has_told = true;
}

/* Where ranks have not met, the speaker must not be ended by mpirun because of another that was quicker. */
static void let_speaker_end(const struct report *report, lr_status status)
{
    const struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};
    const struct report_ranks *ranks = &report->ranks;
    if (status != LR_OK && ranks->name[0] == '\0' && ranks->rank != ranks->speaker) nanosleep(&moment, NULL);
}

void report_speak(struct report *report, int speaker, lr_status status)
{
    report->ranks.speaker = speaker;
    report_clear(report);
    tell_for_ranks(report, status);
}

int report_exit_code(struct report *report, lr_status status)
{
    static const int codes[] = {
        [LR_OK] = CLI_DONE,
        [LR_FAILED] = CLI_FAILED,
        [LR_USAGE] = CLI_USAGE,
        [LR_BAD_INPUT] = CLI_BAD_INPUT,
        [LR_NO_DEVICE] = CLI_NO_DEVICE,
        [LR_CANCELLED] = CLI_FAILED,
    };
    report_clear(report);
    const bool lacks_memory = status == LR_BAD_INPUT && report->status == LR_FAILED;
    const bool lost_device = status == LR_FAILED && report->status == LR_NO_DEVICE;
    if (lacks_memory || lost_device)
        status = report->status; /* the sentence knows more than whoever gave up because of it */
    if (report->ranks.size > 1) {
        tell_for_ranks(report, status);
        let_speaker_end(report, status);
        return codes[status];
    }
    if (status == LR_FAILED && report->status == LR_OK) {
        fputs("loraster: error: this has failed without a reason: --verbose tells what came before "
              "it\n",
              stderr);
    }
    if (status == LR_CANCELLED && stop_is_asked()) fputs("loraster: stopped\n", stderr);
    return codes[status];
}
