/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "run_bar.h"

#include "stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR_CHARS = 12, LINE_CHARS = 256 };

static double whole(const struct run_bar *bar, double iterations)
{
    return bar->before + bar->each * iterations;
}

/* The time left goes by the pace of the steps at hand: sensitivities and iterations differ. */
static void say_left(const struct run_bar *bar, double at, double all, char text[48])
{
    char left[32];
    const double elapsed_s = report_seconds() - bar->pace_begin_s, done = at - bar->pace_begin;
    text[0] = '\0';
    if (elapsed_s > 1 && done > 0)
        snprintf(text, 48, ", %s left", report_duration(left, elapsed_s * (all - at) / done));
}

static void draw(struct run_bar *bar)
{
    char line[LINE_CHARS], left[48];
    const double all = whole(bar, bar->iterations);
    const double share = fmin((bar->calls + bar->call) / bar->calls_in_step, 1.0);
    const double at = fmin(bar->begin + bar->step * share, all);
    const int full = (int)(BAR_CHARS * at / all);
    say_left(bar, at, all, left);
    snprintf(line, sizeof(line), "%s [%.*s%*s] %.0f %%, %s%s", bar->name, full, "############", BAR_CHARS - full, "",
             100 * at / all, bar->what, left);
    report_line(bar->report, line);
}

/* Iterations report themselves in iterations; what comes before them in shares of it. */
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
    bar->calls_in_step = iterates ? 2 : 1;
    bar->calls = 0;
    bar->call = 0;
    snprintf(bar->what, sizeof(bar->what), "%s", what);
    draw(bar);
    return !stop_is_asked();
}

/* A projection begins anew where its share falls. */
static bool take_share(void *user, const char *what, double done, double total)
{
    struct run_bar *bar = user;
    if (bar->step == 0) return bar->report->progress.report(bar->report->progress.user, what, done, total);
    const double share = total > 0 ? done / total : 0;
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
