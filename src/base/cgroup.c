/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether a comma-separated list names the controller. */
static bool lists(const char *list, const char *controller)
{
    const size_t length = strlen(controller);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, controller, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

static void visit_upwards(const char *mount, const char *path, void (*visit)(void *user, const char *folder),
                          void *user)
{
    char folder[1536];
    const int length = snprintf(folder, sizeof(folder), "%s%s", mount, path);
    if (length < 0 || (size_t)length >= sizeof(folder)) return;
    const size_t shortest = strlen(mount);
    for (;;) {
        visit(user, folder);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < shortest) return;
        *slash = '\0';
    }
}

/* line: "number:controllers:path"; v2 has the number 0 and no controllers. */
static void visit_line(char *line, const char *controller, void (*visit)(void *user, const char *folder), void *user)
{
    line[strcspn(line, "\n")] = '\0';
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;
    if (path == NULL) return;
    *list++ = '\0';
    *path++ = '\0';
    if (*list == '\0') {
        visit_upwards("/sys/fs/cgroup", path, visit, user);
    } else if (lists(list, controller)) {
        char mount[64];
        snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controller);
        visit_upwards(mount, path, visit, user);
    }
}

void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user)
{
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (file == NULL) return;
    char line[1280];
    while (fgets(line, sizeof(line), file) != NULL) visit_line(line, controller, visit, user);
    fclose(file);
}

bool lr_cgroup_read(const char *folder, const char *name, int num_values, double *values)
{
    char path[2048];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    int found = 0;
    while (found < num_values && fscanf(file, "%lf", &values[found]) == 1) found++;
    fclose(file);
    return found == num_values;
}
