/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are SAFIR list mode, and then the crystal map of such, or one sentence
 * about bad input. */
#include "files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char signature[32] = "SAFIR CListModeData";

static lr_status drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

/* One crystal a line, as STIR has it. */
static size_t good_map(const lr_scanner *scanner, char *text, size_t room)
{
    size_t used = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int n = 0; n < 81; n++) {
            double at[3];
            lr_module_crystal_centre(&scanner->modules[m], n % 9, n / 9, at);
            used += (size_t)snprintf(text + used, room - used, "%d %d %.4f %.4f %.4f\n", n / 9, 9 * m + n % 9, at[0],
                                     at[1], at[2]);
        }
    }
    return used;
}

static void read_both(const char *events, const char *map)
{
    lr_status status = LR_OK;
    int64_t num_events = 0;
    const lr_log log = {fuzz_note, &status};
    const lr_event_sink sink = {.take = drop, .user = &num_events};
    const lr_events_source source = {
        .path = events, .format = LR_EVENTS_SAFIR, .companion = map, .scanner = fuzz_lors()->scanner, .log = &log};
    fuzz_expect(lr_events_read(&source, &sink, NULL) == LR_OK, status);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static char map_text[162 * 64];
    static size_t map_bytes;
    uint8_t records[48] = {0};
    char events[64], map[64];
    if (map_bytes == 0) map_bytes = good_map(fuzz_lors()->scanner, map_text, sizeof(map_text));
    fuzz_write(events, "a.safir", bytes, count);
    fuzz_write(map, "a.map", (const uint8_t *)map_text, map_bytes);
    read_both(events, map);
    memcpy(records, signature, sizeof(signature));
    records[32 + 4] = 12; /* ring 0, detector 0, and ring 0, detector 12 */
    fuzz_write(events, "a.safir", records, 40);
    fuzz_write(map, "a.map", bytes, count);
    read_both(events, map);
    return 0;
}
