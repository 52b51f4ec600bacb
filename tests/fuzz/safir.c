/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are SAFIR list mode, and then the crystal map of such, or one sentence
 * about bad input. */
#include "files.h"

/* One crystal a line, as STIR has it. */
static size_t good_map(const lr_scanner *scanner, char *text, size_t room)
{
    size_t used = 0;
    for (int c = 0; c < scanner->num_crystals; c++) {
        double at[3];
        lr_scanner_crystal_centre(scanner, c, at);
        used += (size_t)snprintf(text + used, room - used, "%d %d %.4f %.4f %.4f\n", c % 81 / 9, c / 81 * 9 + c % 9,
                                 at[0], at[1], at[2]);
    }
    return used;
}

static void read_both(const char *events, const char *map)
{
    lr_events_source source = {.path = events, .format = LR_EVENTS_SAFIR, .companion = map};
    source.scanner = fuzz_lors()->scanner;
    fuzz_events(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static char map[162 * 64];
    uint8_t records[40] = "SAFIR CListModeData";
    const size_t map_bytes = good_map(fuzz_lors()->scanner, map, sizeof(map));
    const char *events = fuzz_file("a.safir", bytes, count);
    read_both(events, fuzz_file("a.map", map, map_bytes));
    records[32 + 4] = 12; /* ring 0, detector 0, and ring 0, detector 12 */
    events = fuzz_file("a.safir", records, sizeof(records));
    read_both(events, fuzz_file("a.map", bytes, count));
    return 0;
}
