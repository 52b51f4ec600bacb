/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "report.h"

#include "stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_CHARS = 256 };

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

/* Writes a message. Several threads may call this function at the same time. */
static void write_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    static const char *const words[] = {"", "", "warning: ", "error: "};
    struct report *report = user;
    struct report_ranks *ranks = &report->ranks;
    char text[ADVICE_BYTES];
    flockfile(stderr);
    sentence = advice_on(report, status, sentence, text);
    const bool is_error = level == LR_LOG_ERROR;
    const bool is_dropped = (level == LR_LOG_DEBUG && !report->verbose) || (level == LR_LOG_INFO && report->quiet);
    if (is_error) report->status = status;
    if (is_error && ranks->size > 1) {
        if (ranks->first_error[0] == '\0') snprintf(ranks->first_error, sizeof(ranks->first_error), "%s", sentence);
    } else if (!is_dropped && (ranks->size <= 1 || ranks->rank == 0)) { /* only rank 0 reports progress */
        report_clear(report);
        if (report->verbose) fprintf(stderr, "%8.3f s ", report_seconds() - report->start_s);
        fprintf(stderr, "loraster: %s%s\n", words[level], sentence);
    }
    funlockfile(stderr);
}

static void pass_errors(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    if (level == LR_LOG_ERROR) write_sentence(user, level, status, sentence);
}

lr_log report_errors_alone(struct report *report)
{
    return (lr_log){pass_errors, report};
}

/* Standard error has no progress line if it is not a terminal. Messages then say how long the work will take: after
 * ten seconds, and whenever the time since the start has doubled. */
static void tell_log(struct report *report, const char *what, double share, double left_s)
{
    char left[32];
    const double elapsed_s = report_seconds() - report->start_s;
    if (report->terminal || elapsed_s < report->next_word_s || left_s < 1) return;
    report->next_word_s = 2 * elapsed_s;
    report_info(report, "%s: %.0f %%, about %s left", what, 100 * share, report_duration(left, left_s));
}

/* Draws the progress line, at most five times a second. */
static void draw_line(struct report *report, const char *line)
{
    if (!report->terminal || report->quiet) return;
    flockfile(stderr);
    if (report_seconds() - report->drawn_s > 0.2) {
        fprintf(stderr, "\r\033[K%s", line);
        fflush(stderr);
        report->line_drawn = true;
        report->drawn_s = report_seconds();
    }
    funlockfile(stderr);
}

static bool show_progress(void *user, const char *what, double done, double total)
{
    struct report *report = user;
    if (!report->quiet && total > 0) {
        const double now = report_seconds();
        if (strncmp(report->phase, what, sizeof(report->phase) - 1) != 0 || done < report->last_done) {
            snprintf(report->phase, sizeof(report->phase), "%s", what);
            report->phase_start_s = now;
        }
        report->last_done = done;
        const double elapsed_s = now - report->phase_start_s, left_s = elapsed_s * (total - done) / done;
        const bool has_left = elapsed_s > 1 && done > 0;
        if (has_left) tell_log(report, report->phase, done / total, left_s);
        if (report->terminal && now - report->drawn_s > 0.2) {
            char line[LINE_CHARS], left[32];
            snprintf(line, sizeof(line), "%s: %.0f %%%s%s%s", report->phase, 100 * done / total, has_left ? ", " : "",
                     has_left ? report_duration(left, left_s) : "", has_left ? " left" : "");
            draw_line(report, line);
        }
    }
    return !stop_is_asked();
}

void report_init(struct report *report)
{
    *report = (struct report){.start_s = report_seconds(), .next_word_s = 10};
    report->log = (lr_log){write_sentence, report};
    report->progress = (lr_progress){show_progress, report};
    report->terminal = isatty(STDERR_FILENO) == 1;
}

static void say(struct report *report, lr_log_level level, lr_status status, const char *format, va_list list)
{
    char sentence[2048];
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

/* Prints this rank's first error if this rank is the speaker. If the work was stopped, rank 0 prints "stopped". */
static void print_first_error(struct report *report, lr_status status)
{
    struct report_ranks *ranks = &report->ranks;
    const bool is_stopped = status == LR_CANCELLED && ranks->rank == 0 && !ranks->has_printed;
    if (ranks->rank == ranks->speaker && ranks->first_error[0] != '\0' && status != LR_CANCELLED)
        fprintf(stderr, "loraster: error: %s%s\n", ranks->name, ranks->first_error);
    else if (is_stopped)
        fputs("loraster: stopped\n", stderr);
    fflush(stderr);
    ranks->first_error[0] = '\0';
    ranks->has_printed = true;
}

void report_speak(struct report *report, int speaker, lr_status status)
{
    report->ranks.speaker = speaker;
    report_clear(report);
    print_first_error(report, status);
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
        status = report->status; /* the status of the error itself says more about the cause */
    if (report->ranks.size > 1) {
        print_first_error(report, status);
        /* A rank that is not the speaker waits for a short time, because mpirun ends all ranks when one ends. The
         * speaker may not have printed its error yet. */
        const struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};
        const struct report_ranks *ranks = &report->ranks;
        if (status != LR_OK && ranks->name[0] == '\0' && ranks->rank != ranks->speaker) nanosleep(&moment, NULL);
        return codes[status];
    }
    if (status == LR_FAILED && report->status == LR_OK)
        fputs("loraster: error: this has failed without a reason: --verbose shows what came before it\n", stderr);
    if (status == LR_CANCELLED && stop_is_asked()) fputs("loraster: stopped\n", stderr);
    return codes[status];
}

/* --- JSON --- */

/* Writes a text in UTF-8 (RFC 3629) as a JSON string. Names of files may have invalid bytes, which become the
 * replacement character. */
static void put_string(FILE *stream, const char *text)
{
    static const struct {
        unsigned char first, last, least, most; /* first, last: range of the first byte; least, most: of the second */
        int count;
    } rows[] = {{0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        int count = 0; /* number of bytes of the character */
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            if (*c < rows[k].first || *c > rows[k].last) continue;
            bool whole = rows[k].count == 1 || (c[1] >= rows[k].least && c[1] <= rows[k].most);
            for (int b = 2; b < rows[k].count && whole; b++) whole = c[b] >= 0x80 && c[b] <= 0xbf;
            count = whole ? rows[k].count : 0;
        }
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (count == 0)
            fputs("\\ufffd", stream);
        else if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
            fprintf(stream, "\\u%04x", (unsigned)(count == 2 ? c[1] : *c)); /* for control characters */
        else
            fwrite(c, 1, (size_t)count, stream);
        c += count > 0 ? count : 1;
    }
    fputc('"', stream);
}

static void put_key(struct json *json, const char *key)
{
    if (json->wrote) fputs(", ", json->stream);
    if (key != NULL) {
        put_string(json->stream, key);
        fputs(": ", json->stream);
    }
    json->wrote = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->stream);
    json->wrote = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->stream);
    json->wrote = true;
}

void json_text(struct json *json, const char *key, const char *text)
{
    put_key(json, key);
    if (text != NULL)
        put_string(json->stream, text);
    else
        fputs("null", json->stream);
}

void json_number(struct json *json, const char *key, double number)
{
    put_key(json, key);
    if (isfinite(number))
        fprintf(json->stream, "%.12g", number);
    else
        fputs("null", json->stream);
}

void json_int(struct json *json, const char *key, int64_t number)
{
    put_key(json, key);
    fprintf(json->stream, "%" PRId64, number);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void json_numbers(struct json *json, const char *key, const double *numbers, int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) json_number(json, NULL, numbers[k]);
    json_close(json, ']');
}

void json_ints(struct json *json, const char *key, const int *numbers, int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) json_int(json, NULL, numbers[k]);
    json_close(json, ']');
}

/* --- the bar of a reconstruction --- */

enum { BAR_CHARS = 12 };

static double whole(const struct run_bar *bar, double iterations)
{
    return bar->before + bar->each * iterations;
}

static void draw(struct run_bar *bar)
{
    char line[LINE_CHARS], left[48];
    const double all = whole(bar, bar->iterations);
    const double share = fmin((bar->calls + bar->call) / bar->calls_in_step, 1.0);
    const double at = fmin(bar->begin + bar->step * share, all);
    const int full = (int)(BAR_CHARS * at / all);
    /* The time that is left is estimated from the pace of the current kind of step, because sensitivities and
     * iterations have different paces. */
    char shown[32];
    if (!(at > bar->pace_begin)) bar->pace_begin_s = report_seconds(); /* preparations do not count */
    const double elapsed_s = report_seconds() - bar->pace_begin_s, done = at - bar->pace_begin;
    left[0] = '\0';
    if (elapsed_s > 1 && done > 0) {
        const double left_s = elapsed_s * (all - at) / done;
        snprintf(left, 48, ", %s left", report_duration(shown, left_s));
        tell_log(bar->report, bar->name, at / all, left_s);
    }
    snprintf(line, sizeof(line), "%s [%.*s%*s] %.0f %%, %s%s", bar->name, full, "############", BAR_CHARS - full, "",
             100 * at / all, bar->what, left);
    draw_line(bar->report, line);
}

/* Begins a step of the bar: a subset of an iteration, or a part of the work before iterations. */
static bool take_step(void *user, const char *what, double done, double total)
{
    struct run_bar *bar = user;
    const bool iterates = strncmp(what, "iteration", 9) == 0;
    if (iterates != bar->iterates || bar->step == 0) {
        bar->iterates = iterates;
        bar->pace_begin_s = report_seconds();
        bar->pace_begin = iterates ? bar->before : 0;
    }
    bar->begin = iterates ? whole(bar, done) : bar->before * done / fmax(total, 1);
    bar->step = iterates ? bar->each / bar->subsets : bar->before / fmax(total, 1);
    if (bar->of_lines && !iterates) { /* the first subset's sensitivity gives those of all subsets */
        bar->begin = done > 0 ? bar->before : 0;
        bar->step = bar->before;
    }
    bar->calls_in_step = iterates ? 2 : 1;
    bar->calls = 0;
    bar->call = 0;
    snprintf(bar->what, sizeof(bar->what), "%s", what);
    draw(bar);
    return !stop_is_asked();
}

/* Shows the progress of a projection within its step. If `done` has become smaller, another projection has begun. */
static bool take_share(void *user, const char *what, double done, double total)
{
    struct run_bar *bar = user;
    if (bar->step == 0) return bar->report->progress.report(bar->report->progress.user, what, done, total);
    const double share = total > 0 ? done / total : 0;
    if (bar->of_lines && !bar->iterates && total > 0) bar->before = bar->step = total;
    if (share < bar->call) bar->calls += bar->calls + 1 < bar->calls_in_step;
    bar->call = share;
    draw(bar);
    return !stop_is_asked();
}

void run_bar_init(struct run_bar *bar, struct report *report)
{
    *bar = (struct run_bar){.report = report, .each = 1, .iterations = 1, .subsets = 1};
    bar->steps = (lr_progress){take_step, bar};
    bar->within = (lr_progress){take_share, bar};
}
