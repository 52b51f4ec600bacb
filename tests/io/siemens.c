/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Siemens list mode: hand-made words, a whole sinogram plane of a Biograph mMR against the geometry of its bins, all
 * errors that the two files can have, and the real acquisition. */
#include "io/lists.h"
#include "io/scanners.h"
#include "io/text_cases.h"

#define EVENTS "siemens_test.l"
#define HEADER "siemens_test.l.hdr"
#define OTHER "siemens_test_other.hdr.STIR"

/* Numbers of the mMR, from the notes that come with the data. */
enum { AROUND = 504, RINGS = 64, BINS = 344, VIEWS = 252, PER_MODULE = 9, LARGEST = 60 };

/* Numbers of the small ring. */
enum { ACROSS = 3, DEEP = 4, SMALL_BINS = 20, SMALL_VIEWS = 16 };

/* LORs of the mMR; those of the small ring are in `files`. */
static lr_lors *mmr;

#define SMALL_HEADER                                                                                                   \
    "!INTERFILE:=\ndata format := CoincidenceList\r\nnumber of rings:=4\n%number of projections:=20\n"                 \
    "%number of views := 16\n%maximum ring difference:=2\n%axial_compression:=1\n"                                     \
    "%LM event and tag words format (bits):=32\n"

/* On a little-endian machine. */
static void write_words(const uint32_t *words, size_t count)
{
    bytes_write(EVENTS, words, 4 * count);
}

static int set_up(void **state)
{
    mmr = lors_of(keep(lr_scanner_read("siemens-mmr", NULL)));
    return files_begin_with(state, octagon());
}

/* header NULL: the header beside the events. */
static lr_events_source source_of(const char *path, const char *header)
{
    return (lr_events_source){.path = path, .format = LR_EVENTS_SIEMENS, .companion = header};
}

/* --- hand-made words --- */

/* Crystal p of a module in a ring that is counted from the largest z downwards. */
static int small_crystal(int module, int p, int ring)
{
    return module * ACROSS * DEEP + (DEEP - 1 - ring) * ACROSS + p;
}

static uint32_t address(int plane, int view, int bin)
{
    return (uint32_t)((plane * SMALL_VIEWS + view) * SMALL_BINS + bin);
}

static const uint32_t prompt_bit = UINT32_C(1) << 30, tag_bit = UINT32_C(1) << 31;

/* There are 32 positions around the ring; module k has positions 4k .. 4k + 3, the first of them virtual. View 1, t
 * = 0: positions 1 and 17, p = 0 of modules 0 and 4. View 2, t = 3: positions 2 + 1 = 3 and 2 - 2 + 16 = 16, which
 * is virtual; t = 2: 3 and 2 - 1 + 16 = 17. View 1, t = -3: 1 - 2 = -1, which is 31, and 1 + 1 + 16 = 18. Number of
 * planes: 4 in segment 0, 3 in -1, 3 in +1, 2 in -2, 2 in +2. */
static void words_are_spelled_out(void **state)
{
    const lr_lors *lors = files.lors;
    const uint32_t words[] = {
        tag_bit | 7,                     /* a time mark */
        tag_bit | 0x1fffffff,            /* another one, with all bits of its time set */
        prompt_bit | address(0, 1, 10),  /* rings 0 and 0 */
        prompt_bit | address(0, 1, 10),  /* again */
        address(0, 1, 10),               /* the same, delayed */
        prompt_bit | address(4, 2, 12),  /* segment -1, a = 0: rings 1 and 0 */
        prompt_bit | address(7, 2, 12),  /* segment +1, a = 0: rings 0 and 1 */
        address(13, 1, 7),               /* segment +2, a = 1: rings 1 and 3 */
        prompt_bit | address(11, 1, 7),  /* segment -2, a = 1: rings 3 and 1 */
        tag_bit | UINT32_C(1) << 29 | 5, /* tags of other kinds */
        tag_bit | prompt_bit,
        prompt_bit | address(2, 2, 13), /* a virtual crystal */
        prompt_bit | address(14, 0, 0), /* a plane that does not exist */
        prompt_bit | address(0, 1, 18), /* t = 8: positions 5 and 13, modules 1 and 3 */
    };
    write_words(words, sizeof(words) / sizeof(words[0]));
    text_write(HEADER, SMALL_HEADER);
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, HEADER), lors);
    assert_counts(&data.counts, (const int64_t[]){8, 2, 2, 2, 2, 1});
    const int64_t flat = lr_lors_number(lors, small_crystal(0, 0, 0), small_crystal(4, 0, 0));
    const int64_t minus = lr_lors_number(lors, small_crystal(0, 2, 1), small_crystal(4, 0, 0));
    const int64_t plus = lr_lors_number(lors, small_crystal(0, 2, 0), small_crystal(4, 0, 1));
    const int64_t far_plus = lr_lors_number(lors, small_crystal(7, 2, 1), small_crystal(4, 1, 3));
    const int64_t far_minus = lr_lors_number(lors, small_crystal(7, 2, 3), small_crystal(4, 1, 1));
    assert_pairs(0, {data.prompts->count, 4}, {value_of(data.prompts, flat), 2}, {value_of(data.prompts, minus), 1},
                 {value_of(data.prompts, plus), 1}, {value_of(data.prompts, far_minus), 1}, {data.delayeds->count, 2},
                 {value_of(data.delayeds, flat), 1}, {value_of(data.delayeds, far_plus), 1},
                 {files.log.num_warnings, 1});
    assert_warning(&files.log, "2 of 10 events name crystals that octagon lacks, first word 11, at byte 44 (0x4");
}

/* The header tells that bytes precede the words, and announces more words than the file has. */
static void headers_are_believed(void **state)
{
    write_words((const uint32_t[]){0xffffffff, 0xffffffff, prompt_bit | address(0, 1, 10)}, 3);
    text_write(HEADER, SMALL_HEADER "!data offset in bytes:=8\n%total listmode word counts:=77\n");
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, HEADER), files.lors);
    assert_pairs(0, {data.counts.prompts, 1}, {data.counts.other_words, 0});
    assert_warning(&files.log, "holds 1 words where its header tells of 77");
}

/* --- a whole plane of the mMR --- */

/* Planes 0 (rings 0, 0), 64 (the first of segment -1: rings 1, 0) and 127 (the first of segment +1: rings 0, 1). */
static const int shown_planes[][3] = {{0, 0, 0}, {64, 1, 0}, {127, 0, 1}};
enum { NUM_SHOWN = 3 };

/* The word of a bin, and the two positions around the ring that its line joins, not wrapped; false if one of its
   crystals is virtual. */
static bool bin_of(int plane, int view, int bin, uint32_t *word, int places[2])
{
    const int t = bin - BINS / 2, half = (int)floor(0.5 * t);
    *word = prompt_bit | (uint32_t)((shown_planes[plane][0] * VIEWS + view) * BINS + bin);
    places[0] = view + half;
    places[1] = view - (t - half) + VIEWS;
    return (places[0] + AROUND) % AROUND % PER_MODULE != 0 && (places[1] + AROUND) % AROUND % PER_MODULE != 0;
}

/* Every bin has one event. The crystals of a bin are virtual or in coincidence, and no two bins share a LOR. */
static void every_bin_has_a_lor_of_its_own(void **state)
{
    const int count = NUM_SHOWN * VIEWS * BINS;
    uint32_t *words = kept((size_t)count * sizeof(*words), 1);
    int virtual_bins = 0;
    for (int n = 0; n < count; n++) {
        int places[2];
        virtual_bins += !bin_of(n / (VIEWS * BINS), n / BINS % VIEWS, n % BINS, &words[n], places);
    }
    write_words(words, (size_t)count);
    remove(HEADER);
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, NULL), mmr);
    print_message("%d bins, %d of virtual crystals\n", count, virtual_bins);
    assert_pairs(0, {data.counts.unknown_crystals, virtual_bins}, {data.counts.not_in_coincidence, 0},
                 {data.prompts->count, count - virtual_bins});
    assert_true(total(data.prompts) == (double)data.prompts->count);
}

/* Reads a file of one prompt event and returns the centres of its crystals, first the one whose angle from
 * `lead_deg` is smaller. */
static void ends_of(uint32_t word, double lead_deg, double ends[2][3])
{
    double found[2][3];
    write_words(&word, 1);
    const lr_prompts_delayeds data = bin_events(source_of(EVENTS, NULL), mmr);
    assert_int_equal(data.prompts->count, 1);
    find_ends(mmr, data.prompts->index[0], found);
    const double lead[2] = {cos(lead_deg * pi / 180), sin(lead_deg * pi / 180)};
    const bool turns = (found[0][0] - found[1][0]) * lead[0] + (found[0][1] - found[1][1]) * lead[1] < 0;
    memcpy(ends[0], found[turns], sizeof(ends[0]));
    memcpy(ends[1], found[!turns], sizeof(ends[1]));
}

/* On a circle of N positions, the line of view v and tangential index t joins the angles 360 (v + floor(t/2)) / N
 * and 360 (v - floor((t+1)/2)) / N + 180 and passes the axis at R sin(pi |t| / N). In STIR's frame angle 0 is at the
 * top of the bore, angles increase towards the patient's left, and rings are counted towards the bed. For a patient
 * who lies on the back with the head first, this is 90 degrees more in our frame, and the direction of -z. Crystals
 * are on flat modules instead of the circle, 338 mm from the axis: the last of eight, 3.5 pitches from the middle,
 * is up to 0.08 degrees from its position on the circle, which moves a line by 0.47 mm; in addition, radii differ by
 * 0.15 mm. */
static void lines_lie_where_their_bins_say(void **state)
{
    uint64_t seed = test_seed();
    const double pitch_mm = mmr->scanner->modules[0].pitch_mm[1];
    int seen = 0;
    double worst_deg = 0, worst_mm = 0;
    remove(HEADER);
    while (seen < 40) {
        const int *plane = shown_planes[seen % NUM_SHOWN];
        const int view = (int)(test_random(&seed) * VIEWS), bin = (int)(test_random(&seed) * BINS);
        int places[2];
        uint32_t word;
        double ends[2][3];
        if (!bin_of(seen % NUM_SHOWN, view, bin, &word, places)) continue;
        ends_of(word, 90 + 360.0 / AROUND * places[0], ends);
        for (int e = 0; e < 2; e++) {
            const double off_deg = atan2(ends[e][1], ends[e][0]) * 180 / pi - (90 + 360.0 / AROUND * places[e]);
            worst_deg = fmax(worst_deg, fabs(off_deg - 360 * floor(off_deg / 360 + 0.5)));
            assert_close(ends[e][2], (31.5 - plane[1 + e]) * pitch_mm, 1e-12);
        }
        const double dx = ends[1][0] - ends[0][0], dy = ends[1][1] - ends[0][1];
        const double mean_mm = 0.5 * (hypot(ends[0][0], ends[0][1]) + hypot(ends[1][0], ends[1][1]));
        const double past_mm = fabs(ends[0][0] * dy - ends[0][1] * dx) / hypot(dx, dy);
        worst_mm = fmax(worst_mm, fabs(past_mm - mean_mm * sin(pi * abs(bin - BINS / 2) / AROUND)));
        seen++;
    }
    print_message("crystals off by at most %.2f degrees, lines by %.2f mm\n", worst_deg, worst_mm);
    assert_true(worst_deg < 0.08 && worst_mm < 0.62);
}

/* --- errors in files --- */

static void expect(const char *header, const char *sentence)
{
    refuse_events(source_of(EVENTS, header), files.lors, sentence);
}

static void events_before_the_end_are_read(void **state)
{
    const uint32_t words[] = {prompt_bit | address(0, 1, 10), tag_bit | 7, address(0, 2, 9),
                              prompt_bit | address(1, 1, 10)};
    text_write(HEADER, SMALL_HEADER);
    write_words(words, 4);
    lr_events_source source = source_of(EVENTS, HEADER);
    source.scanner = files.lors->scanner;
    lr_event_list *list = list_of(source);
    assert_int_equal(list->count, 3);
    for (int bytes = 15; bytes > 0; bytes--) {
        char said[64];
        snprintf(said, sizeof(said), "at byte %d,", bytes / 4 * 4);
        assert_int_equal(truncate(EVENTS, bytes), 0);
        if (bytes % 4 != 0) check_cut(&source, list, bytes > 12 ? 2 : bytes > 4 ? 1 : 0, said);
    }
}

static void broken_files_are_refused(void **state)
{
    const uint32_t words[] = {prompt_bit | address(0, 1, 10), tag_bit | 1};
    unsigned char bytes[8] = {0};
    text_write(HEADER, SMALL_HEADER);
    for (size_t rest = 1; rest < 4; rest++) {
        char sentence[128];
        snprintf(sentence, sizeof(sentence), EVENTS ": is truncated: word 1, at byte 4, has %zu of 4", rest);
        bytes_write(EVENTS, bytes, 4 + rest);
        expect(HEADER, sentence);
    }
    bytes_write(EVENTS, "", 0);
    expect(HEADER, EVENTS ": holds no words");
    write_words(words + 1, 1);
    expect(HEADER, EVENTS ": none of its 1 words is an event");
    write_words((const uint32_t[]){prompt_bit | address(40, 0, 0), address(14, 0, 0)}, 2);
    expect(HEADER, "2 of 2 events name crystals that octagon lacks, first word 0");
    text_write(EVENTS, SMALL_HEADER);
    expect(HEADER, EVENTS ": this is a header");
}

static void wrong_headers_are_refused(void **state)
{
    write_words((const uint32_t[]){prompt_bit | address(0, 1, 10)}, 1);
    for (struct text_cases cases = cases_of(IO_CASES, "siemens"); next_case(&cases);) {
        text_write(HEADER, cases.fields[1]);
        expect(HEADER, cases.fields[0]);
        expect(NULL, cases.fields[0]); /* the header is beside the events */
    }
    static char line[70000];
    memset(line, 'a', sizeof(line));
    memcpy(line, "!INTERFILE\n", 11);
    bytes_write(HEADER, line, sizeof(line));
    expect(HEADER, HEADER ":2: lines go on and on");
    expect("no-such.hdr", "no-such.hdr: the header cannot be opened: No such file");
    expect(".", ".: ");
    remove(HEADER);
    expect(NULL, EVENTS ": how many bins a projection of octagon has is not known");
}

/* EVENTS.hdr is taken first; otherwise, the only file that names the events. */
static void the_header_is_found_beside_the_events(void **state)
{
    static const char ours[] = SMALL_HEADER "name of data file := " EVENTS "\n";
    write_words((const uint32_t[]){prompt_bit | address(0, 1, 10)}, 1);
    remove(HEADER);
    text_write(OTHER, SMALL_HEADER "name of data file := another.l\n");
    expect(NULL, "how many bins a projection of octagon has is not known");
    text_write(OTHER, ours);
    for (int k = 0; k < 2; k++) {
        lr_prompts_delayeds data = bin_events(source_of(k == 0 ? EVENTS : "./" EVENTS, NULL), files.lors);
        assert_int_equal(data.prompts->count, 1);
        if (k > 0) continue;
        text_write("siemens_test_more.hdr", ours);
        expect(NULL, EVENTS ": more than one header names it, ");
        text_write(HEADER, SMALL_HEADER);
    }
    remove("siemens_test_more.hdr");
    remove(OTHER);
}

/* Panels of blocks, and modules that are listed one by one, do not have this numbering. */
static void other_scanners_are_refused(void **state)
{
    static const char *const names[] = {"safir-dual-ring-prototype", "two-opposed-modules"};
    write_words((const uint32_t[]){prompt_bit}, 1);
    for (size_t k = 0; k < 2; k++)
        refuse_events(source_of(EVENTS, NULL), lors_of(keep(lr_scanner_read(names[k], NULL))), "is not one");
}

/* --- the real acquisition --- */

/* Counts at each of the nine crystals of a block, from the notes that come with the data: a slightly wrong
 * assignment would put tens of thousands of counts on the virtual crystal. */
static void the_virtual_crystal_is_never_hit(void **state)
{
    static const double known[PER_MODULE] = {0, 48214, 55984, 56010, 58107, 58387, 55830, 56314, 48916};
    double found[PER_MODULE] = {0};
    int largest = 0;
    char path[1024];
    if (test_data(path, "mmr/small_listmode_file.l") == NULL) skip();
    lr_prompts_delayeds data = bin_events(source_of(path, NULL), mmr);
    assert_warning(&files.log, "holds 254816 words where its header tells of 331257106"); /* so the header was found */
    assert_counts(&data.counts, (const int64_t[]){218881, 35320, 613, 2, 0, 0});
    assert_true(total(data.prompts) == 218881 && total(data.delayeds) == 35320);
    for (int64_t k = 0; k < data.prompts->count; k++) {
        const lr_lor lor = lr_lors_describe(mmr, data.prompts->index[k]);
        found[lor.p + 1] += data.prompts->values[k];
        found[lor.r + 1] += data.prompts->values[k];
        largest = abs(lor.q - lor.s) > largest ? abs(lor.q - lor.s) : largest;
    }
    for (int k = 0; k < PER_MODULE; k++) assert_true(found[k] == known[k]);
    assert_int_equal(largest, LARGEST);
}

group_main("Siemens list mode", set_up, files_end,
           EACH(cmocka_unit_test, words_are_spelled_out, headers_are_believed, every_bin_has_a_lor_of_its_own,
                lines_lie_where_their_bins_say, broken_files_are_refused, events_before_the_end_are_read,
                wrong_headers_are_refused, the_header_is_found_beside_the_events, other_scanners_are_refused,
                the_virtual_crystal_is_never_hit))
