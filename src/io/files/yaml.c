/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * YAML and JSON read by libfyaml. Each error shows the line of the file where the error is. */
#include "io/files/yaml.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/regular_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_EXCERPT = (LR_YAML_EXCERPT - 16) / 2, MAX_SENTENCE = 700 };

/* Lines and columns count characters from 1. Line 0 means unknown. */
struct place {
    int line, column, width;
};

/* --- showing a place --- */

static bool continues_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Writes the line of a place, and marks below it: "\n    the line\n    ^~~~". Empty if the line is not known. */
static void show_line(const struct lr_yaml *yaml, const struct place *place, char excerpt[LR_YAML_EXCERPT])
{
    excerpt[0] = '\0';
    if (place->line <= 0) return;
    const char *line = yaml->text, *const end = yaml->text + yaml->text_bytes;
    for (int k = 1; k < place->line && line != NULL; k++) {
        line = memchr(line, '\n', (size_t)(end - line));
        if (line != NULL) line++;
    }
    const char *stop = line != NULL ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    stop = stop != NULL || line == NULL ? stop : end;
    while (stop > line && stop[-1] == '\r') stop--;

    if (line != NULL && stop > line) {
        /* A long line is shown from a little before the position. */
        int column = place->column;
        for (; stop - line > MAX_EXCERPT && column > MAX_EXCERPT / 2; column--) do {
                line++;
            } while (line < stop && continues_character(*line));
        size_t length = (size_t)(stop - line), used = 0;
        if (length > MAX_EXCERPT) {
            length = MAX_EXCERPT;
            while (length > 0 && continues_character(line[length])) length--;
        }
        char under[MAX_EXCERPT + 2];
        for (int k = 1; k < column && used < MAX_EXCERPT; k++) /* a tab below a tab keeps the caret in its column */
            under[used++] = (size_t)k <= length && line[k - 1] == '\t' ? '\t' : ' ';
        under[used++] = '^';
        for (int k = 1; k < place->width && used < MAX_EXCERPT && used < length; k++) under[used++] = '~';
        snprintf(excerpt, LR_YAML_EXCERPT, "\n    %.*s\n    %.*s", (int)length, line, (int)used, under);
    }
}

/* Logs a message with its position in the file. An error also shows the line. */
static void say_at(const struct lr_yaml *yaml, const struct place *place, lr_log_level level, lr_status status,
                   const char *message)
{
    char excerpt[LR_YAML_EXCERPT] = "";
    if (place->line <= 0) {
        lr_log_write(yaml->log, level, status, "%s: %.*s", yaml->name, MAX_SENTENCE, message);
        return;
    }
    if (level == LR_LOG_ERROR) show_line(yaml, place, excerpt);
    lr_log_write(yaml->log, level, status, "%s:%d:%d: %.*s%s", yaml->name, place->line, place->column, MAX_SENTENCE,
                 message, excerpt);
}

static struct fy_diag *create_diag(void)
{
    struct fy_diag_cfg config;
    fy_diag_cfg_default(&config);
    config.fp = NULL;
    config.colorize = false;
    struct fy_diag *diag = fy_diag_create(&config);
    if (diag != NULL) fy_diag_set_collect_errors(diag, true);
    return diag;
}

/* Finds the position of a node. libfyaml gives the positions of sequences and mappings only in error reports, so a
 * report is made. The report's position of a quoted text or an alias is one character after its quote or star. */
static struct place find_place(struct fy_node *node)
{
    struct place place = {0, 0, 1};
    struct fy_diag *diag = node ? create_diag() : NULL;
    if (diag == NULL) return place;
    fy_diag_node_report(diag, node, FYET_ERROR, "here");
    void *iterator = NULL;
    const struct fy_diag_error *report = fy_diag_errors_iterate(diag, &iterator);
    if (report != NULL) {
        /* Characters around a scalar's text: two quotes, or an alias's star. */
        const enum fy_node_style style = fy_node_get_style(node);
        const bool is_quoted = style == FYNS_DOUBLE_QUOTED || style == FYNS_SINGLE_QUOTED;
        const int marks = is_quoted ? 2 : fy_node_is_alias(node) ? 1 : 0;
        size_t length = 0;
        const char *text = fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
        const bool is_short = text != NULL && memchr(text, '\n', length) == NULL && length <= MAX_EXCERPT;
        const int before = marks > 0 && report->column > 1 ? 1 : 0;
        place = (struct place){report->line, report->column - before, is_short ? (int)length + marks : 1};
    }
    fy_diag_destroy(diag);
    return place;
}

int lr_yaml_line(struct fy_node *node)
{
    return find_place(node).line;
}

void lr_yaml_show(const struct lr_yaml *yaml, struct fy_node *node, int place[2], char excerpt[LR_YAML_EXCERPT])
{
    const struct place found = find_place(node);
    place[0] = found.line;
    place[1] = found.column;
    show_line(yaml, &found, excerpt);
}

void lr_yaml_say(const struct lr_yaml *yaml, struct fy_node *at, lr_log_level level, lr_status status,
                 const char *sentence)
{
    const struct place place = find_place(at);
    say_at(yaml, &place, level, status, sentence);
}

/* Reports that memory ran out. libfyaml has no error of its own for this. errno is therefore cleared before a call of
 * libfyaml, and is ENOMEM afterwards. */
static lr_status report_memory(const struct lr_yaml *yaml)
{
    return lr_error(yaml->log, LR_FAILED, "%s: no memory to read it (%lld bytes of YAML)", yaml->name,
                    (long long)yaml->text_bytes);
}

lr_status lr_yaml_error(const struct lr_yaml *yaml, struct fy_node *at, const char *format, ...)
{
    char sentence[MAX_SENTENCE + 1];
    va_list list;
    if (errno == ENOMEM) return report_memory(yaml); /* after a failed allocation, a document looks empty */
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    lr_yaml_say(yaml, at, LR_LOG_ERROR, LR_BAD_INPUT, sentence);
    return LR_BAD_INPUT;
}

/* --- text --- */

/* Refuses bytes that are no text, because libfyaml silently stops at some of them. Refuses directives, because libfyaml
 * never ends at some of them. */
static lr_status check_text(const struct lr_yaml *yaml)
{
    /* The line breaks of all versions of YAML, and a byte order mark. */
    static const char *const breaks[] = {"\n", "\r", "\xef\xbb\xbf", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    const unsigned char *text = (const unsigned char *)yaml->text;
    int line = 1;
    for (int64_t at = 0; at < yaml->text_bytes;) {
        const unsigned char byte = text[at];
        const int count = byte < 0x80                    ? 1
                          : byte >= 0xc2 && byte < 0xe0  ? 2
                          : (byte & 0xf0) == 0xe0        ? 3
                          : byte >= 0xf0 && byte <= 0xf4 ? 4
                                                         : 0;
        bool is_text = count > 0 && count <= yaml->text_bytes - at && byte != 0x7f &&
                       (byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r');
        for (int k = 1; k < count && is_text; k++) is_text = continues_character((char)text[at + k]);
        if (!is_text) {
            return lr_error(yaml->log, LR_BAD_INPUT, "%s: line %d holds the byte 0x%02x, so this is no %s", yaml->name,
                            line, byte, byte < 0x20 ? "text" : "UTF-8 text: save it as UTF-8");
        }
        bool begins_line = at == 0;
        for (size_t k = 0; byte == '%' && k < sizeof(breaks) / sizeof(breaks[0]); k++) {
            const int64_t bytes = (int64_t)strlen(breaks[k]);
            begins_line |= at >= bytes && memcmp(text + at - bytes, breaks[k], (size_t)bytes) == 0;
        }
        if (byte == '%' && begins_line) {
            return lr_error(yaml->log, LR_BAD_INPUT, "%s: line %d begins with %%, a YAML directive: leave it out",
                            yaml->name, line);
        }
        line += byte == '\n';
        at += count;
    }
    return LR_OK;
}

/* Asks about the bracket that is still open before an error, because libfyaml finds that error in a later line. */
static void ask_for_bracket(const struct lr_yaml *yaml, const struct fy_diag_error *report, char question[96])
{
    enum { DEEPEST = 32 };
    const char *open[DEEPEST], *end = yaml->text; /* end: the place of the error */
    int depth = 0, line = 1;
    for (; line < report->line && *end != '\0'; line += *end++ == '\n') continue;
    end += strnlen(end, (size_t)(report->column - 1));
    for (const char *at = yaml->text; at < end; at++) {
        const bool begins = at == yaml->text || strchr(" \t\n,[{", at[-1]) != NULL;
        if (begins && (*at == '#' || *at == '"' || *at == '\'')) {
            const char stop[] = {*at == '#' ? '\n' : *at, '\0'};
            at += 1 + strcspn(at + 1, stop);
        } else if (depth < DEEPEST && (*at == '{' || *at == '[')) {
            open[depth++] = at;
        } else if (depth > 0 && (*at == '}' || *at == ']')) {
            depth--;
        }
    }
    if (depth == 0) return;
    line = 1;
    for (const char *at = yaml->text; at < open[depth - 1]; at++) line += *at == '\n';
    if (line < report->line || strstr(report->msg, "mismatched") != NULL)
        snprintf(question, 96, ": is the '%c' of line %d closed?", *open[depth - 1], line);
}

/* Asks about the line that libfyaml cannot fit to the lines before it. */
static void ask_for_indentation(const struct lr_yaml *yaml, const struct fy_diag_error *report, char question[96])
{
    const bool goes_on = strstr(report->msg, "multiline") != NULL; /* the error is in the line before */
    int before = 0, indent_before = 0, number = 1;
    if (!goes_on && strstr(report->msg, "indentation") == NULL) return;
    for (const char *line = yaml->text, *next; *line != '\0'; line = next, number++) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        const int indent = (int)strspn(line, " ");
        if (strchr("\t\r\n#", line[indent]) != NULL) continue; /* strchr finds the end of the text, too */
        if (number >= report->line + goes_on && before > 0) {
            if (goes_on && indent <= indent_before)
                snprintf(question, 96, ": does line %d lack a colon?", before);
            else if (indent != indent_before)
                snprintf(question, 96, ": line %d is indented %s than line %d", number,
                         indent > indent_before ? "deeper" : "less", before);
            return;
        }
        before = number;
        indent_before = indent;
    }
}

static void report_syntax(const struct lr_yaml *yaml)
{
    if (errno == ENOMEM) {
        (void)report_memory(yaml);
        return;
    }
    void *iterator = NULL;
    const struct fy_diag_error *report = fy_diag_errors_iterate(yaml->diag, &iterator);
    if (report == NULL) { /* libfyaml does not describe a few mistakes, such as ">0" */
        lr_error(yaml->log, LR_BAD_INPUT,
                 "%s: not valid YAML, in a place that the parser does not tell: check quotes, '|', '>' and indentation",
                 yaml->name);
        return;
    }
    const struct place place = {report->line, report->column, 1};
    char sentence[MAX_SENTENCE + 1], question[96] = "";
    ask_for_indentation(yaml, report, question);
    if (question[0] == '\0' && strstr(report->msg, "flow") != NULL) ask_for_bracket(yaml, report, question);
    snprintf(sentence, sizeof(sentence), "not valid YAML: %s%s", report->msg, question);
    say_at(yaml, &place, LR_LOG_ERROR, LR_BAD_INPUT, sentence);
}

/* Parses `text`, which the document owns from then on. */
static struct lr_yaml *create_from_text(const char *name, char *text, int64_t text_bytes, const lr_log *log)
{
    struct lr_yaml *yaml = lr_alloc(1, sizeof(*yaml), "a YAML document", log);
    if (yaml == NULL) {
        free(text);
        return NULL;
    }
    yaml->text = text;
    yaml->text_bytes = text_bytes;
    yaml->log = log;
    yaml->name = lr_copy_string(name, log);
    if (yaml->name == NULL) goto failed;
    /* libfyaml crashes if memory runs out. A dense text takes about 40 bytes of memory per byte, so a larger block is
     * allocated here as a test. */
    void *room = lr_alloc((1 << 20) + 60 * text_bytes, 1, "reading YAML", log);
    free(room);
    yaml->diag = room != NULL ? create_diag() : NULL;
    if (room != NULL && yaml->diag == NULL) (void)report_memory(yaml);
    if (yaml->diag == NULL || check_text(yaml) != LR_OK) goto failed;

    errno = 0;
    struct fy_parse_cfg config = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE | FYPCF_ALLOW_DUPLICATE_KEYS,
        .diag = yaml->diag,
    };
    yaml->parser = fy_parser_create(&config);
    if (yaml->parser == NULL || fy_parser_set_string(yaml->parser, text, (size_t)text_bytes) != 0) {
        report_syntax(yaml);
        goto failed;
    }
    yaml->document = fy_parse_load_document(yaml->parser);
    if (fy_diag_got_error(yaml->diag)) {
        report_syntax(yaml);
        goto failed;
    }
    if (yaml->document == NULL || fy_document_root(yaml->document) == NULL) {
        if (errno == ENOMEM)
            (void)report_memory(yaml);
        else
            lr_error(log, LR_BAD_INPUT, "%s: the file is empty: give a scanner with a 'ring' or 'modules'", name);
        goto failed;
    }
    struct fy_document *second = fy_parse_load_document(yaml->parser);
    if (second != NULL) {
        lr_yaml_error(yaml, fy_document_root(second), "a second YAML document begins: keep one scanner per file");
        fy_parse_document_destroy(yaml->parser, second);
        goto failed;
    }
    if (fy_diag_got_error(yaml->diag)) {
        report_syntax(yaml);
        goto failed;
    }
    errno = 0;
    return yaml;

failed:
    lr_yaml_destroy(yaml);
    return NULL;
}

struct lr_yaml *lr_yaml_parse(const char *name, const char *text, int64_t text_bytes, const lr_log *log)
{
    char *copy = lr_alloc(text_bytes + 1, 1, "a YAML text", log);
    if (copy == NULL) return NULL;
    memcpy(copy, text, (size_t)text_bytes);
    return create_from_text(name, copy, text_bytes, log);
}

struct lr_yaml *lr_yaml_read(const char *path, const lr_log *log)
{
    struct stat facts = {0};
    FILE *file = lr_file_open(path, "", log);
    if (file == NULL) return NULL;
    if (fstat(fileno(file), &facts) != 0 || facts.st_size > LR_YAML_MAX_BYTES) {
        lr_error(log, LR_BAD_INPUT, "%s: %.0f MiB is too large for a YAML or JSON file: at most %d MiB", path,
                 (double)facts.st_size / 1048576, (int)(LR_YAML_MAX_BYTES >> 20));
        fclose(file);
        return NULL;
    }
    const int64_t bytes = (int64_t)facts.st_size;
    char *text = lr_alloc(bytes + 1, 1, "a YAML text", log);
    if (text != NULL && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        lr_error(log, LR_BAD_INPUT, "%s: cannot be read to its end: %s", path,
                 ferror(file) ? strerror(errno) : "it became shorter meanwhile");
        free(text);
        text = NULL;
    }
    fclose(file);
    return text ? create_from_text(path, text, bytes, log) : NULL;
}

void lr_yaml_destroy(struct lr_yaml *yaml)
{
    if (yaml == NULL) return;
    if (yaml->document != NULL) fy_parse_document_destroy(yaml->parser, yaml->document);
    fy_parser_destroy(yaml->parser);
    fy_diag_destroy(yaml->diag);
    lr_free_all(yaml->text, yaml->name, yaml);
}

enum { MAX_FIELDS = 16, MAX_NUMBER = 63, MAX_QUOTE = 40 };

/* Name of the value being read, for messages: "pitch_mm[1]". */
struct target {
    const struct lr_yaml *yaml;
    struct fy_node *at;
    char key[64];
};

/* --- scalars --- */

/* True if the value has a position in the file. An empty value, as in "key:", has none. */
static bool stands_somewhere(struct fy_node *node)
{
    return node != NULL && (!fy_node_is_scalar(node) || fy_token_start_mark(fy_node_get_scalar_token(node)) != NULL);
}

/* Returns the node's text, cut for a message. */
static const char *quote(struct fy_node *node, char out[MAX_QUOTE + 16])
{
    size_t length = 0;
    const char *text = node && fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (node && fy_node_is_mapping(node)) return "a mapping {...}";
    if (node && fy_node_is_sequence(node)) return "a list [...]";
    if (text == NULL || (length == 0 && fy_node_get_style(node) == FYNS_PLAIN)) return "nothing";
    const char *feed = memchr(text, '\n', length);
    size_t shown = feed ? (size_t)(feed - text) : length;
    const bool cut = shown > MAX_QUOTE - 16;
    if (cut) {
        shown = MAX_QUOTE - 16;
        while (shown > 0 && continues_character(text[shown])) shown--; /* do not cut inside a character */
    }
    snprintf(out, MAX_QUOTE + 16, "%s%.*s%s", fy_node_get_style(node) == FYNS_PLAIN ? "'" : "the quoted text '",
             (int)shown, text, cut ? "...'" : "'");
    return out;
}

static lr_status refuse(const struct target *target, struct fy_node *node, const char *wanted)
{
    char text[MAX_QUOTE + 16];
    return lr_yaml_error(target->yaml, target->at, "'%s' must be %s, found %s", target->key, wanted, quote(node, text));
}

static lr_status check_plainness(const struct target *target, struct fy_node *node)
{
    if (node == NULL) return LR_OK;
    if (fy_node_is_alias(node)) {
        return lr_yaml_error(target->yaml, target->at,
                             "'%s' is an alias (*): write the value out, these files take none", target->key);
    }
    if (fy_node_get_tag_token(node) != NULL) {
        return lr_yaml_error(target->yaml, target->at, "'%s' carries a tag (!): remove it, these files take none",
                             target->key);
    }
    return LR_OK;
}

/* True for a decimal number of YAML's core schema: [-+]? (digits [. digits?] | . digits) ([eE] [-+]? digits)? */
static bool is_decimal(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    static const char digits[] = "0123456789";
    const char *whole_end = at + strspn(at, digits);
    const bool has_whole = whole_end > at;
    at = whole_end;
    if (*at == '.') {
        const char *fraction_end = at + 1 + strspn(at + 1, digits);
        if (!has_whole && fraction_end == at + 1) return false;
        at = fraction_end;
    } else if (!has_whole) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '-' || at[1] == '+');
        const char *exponent_end = at + strspn(at, digits);
        if (exponent_end == at) return false;
        at = exponent_end;
    }
    return *at == '\0';
}

/* True for YAML's .inf, -.inf and .nan, and for infinity and NaN as strtod spells them. */
static bool is_not_finite(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    at += *at == '.';
    char lower[8] = "";
    for (size_t k = 0; k < sizeof(lower) - 1 && at[k] != '\0'; k++) lower[k] = (char)tolower((unsigned char)at[k]);
    return strcmp(lower, "inf") == 0 || strcmp(lower, "nan") == 0 || strcmp(lower, "infinit") == 0;
}

/* Copies a plain scalar to `text`. Returns false if the node is no plain scalar, or too long for a number. */
static bool plain_text(struct fy_node *node, char text[MAX_NUMBER + 1])
{
    size_t length = 0;
    const char *scalar = node && fy_node_is_scalar(node) && fy_node_get_style(node) == FYNS_PLAIN
                             ? fy_node_get_scalar(node, &length)
                             : NULL;
    if (scalar == NULL || length == 0 || length > MAX_NUMBER) return false;
    memcpy(text, scalar, length);
    text[length] = '\0';
    return true;
}

static lr_status read_number(const struct target *target, struct fy_node *node, const char *wanted, double *value)
{
    char text[MAX_NUMBER + 1];
    LR_TRY(check_plainness(target, node));
    const bool plain = plain_text(node, text);
    const bool decimal = plain && is_decimal(text);
    const double number = decimal ? strtod(text, NULL) : NAN;
    if ((plain && is_not_finite(text)) || (decimal && !isfinite(number)))
        return lr_yaml_error(target->yaml, target->at, "'%s' must be finite, found '%s'", target->key, text);
    if (!decimal) return refuse(target, node, wanted);
    *value = number;
    return LR_OK;
}

static lr_status read_size(const struct target *target, struct fy_node *node, bool zero_allowed, double *value)
{
    double number = 0;
    LR_TRY(read_number(target, node, "a number", &number));
    if (number < 0 || (number == 0 && !zero_allowed)) {
        return lr_yaml_error(target->yaml, target->at, "'%s' must be %s 0, found %.10g", target->key,
                             zero_allowed ? "at least" : "greater than", number);
    }
    *value = number;
    return LR_OK;
}

static lr_status read_int(const struct target *target, struct fy_node *node, int least, int *value)
{
    double number = 0;
    LR_TRY(read_number(target, node, "a whole number", &number));
    if (number != floor(number)) return refuse(target, node, "a whole number");
    if (number < least || number > INT_MAX) {
        return lr_yaml_error(target->yaml, target->at, "'%s' must be from %d to %d, found %.10g", target->key, least,
                             INT_MAX, number);
    }
    *value = (int)number;
    return LR_OK;
}

lr_status lr_yaml_read_value(const struct lr_yaml *yaml, const struct lr_yaml_field *field, struct fy_node *node,
                             struct fy_node *at)
{
    struct target target = {yaml, stands_somewhere(node) ? node : at, ""};
    snprintf(target.key, sizeof(target.key), "%s", field->key);
    if (field->kind == LR_YAML_COUNT_PAIR || field->kind == LR_YAML_POSITIVE_PAIR ||
        field->kind == LR_YAML_WIDTH_PAIR || field->kind == LR_YAML_NUMBER_PAIR || field->kind == LR_YAML_VECTOR) {
        const int wanted = field->kind == LR_YAML_VECTOR ? 3 : 2;
        LR_TRY(check_plainness(&target, node));
        if (node == NULL || !fy_node_is_sequence(node)) {
            return refuse(&target, node,
                          wanted == 3 ? "a list of 3 numbers [x, y, z]" : "a list of 2 numbers [along u, along v]");
        }
        const int count = fy_node_sequence_item_count(node);
        if (count != wanted) {
            return lr_yaml_error(target.yaml, target.at, "'%s' must be a list of %d numbers, found %d", target.key,
                                 wanted, count);
        }
        void *iterator = NULL;
        for (int index = 0; index < wanted; index++) {
            struct fy_node *item = fy_node_sequence_iterate(node, &iterator);
            struct target item_target = {target.yaml, stands_somewhere(item) ? item : target.at, ""};
            snprintf(item_target.key, sizeof(item_target.key), "%.40s[%d]", target.key, index);
            double *number = (double *)field->value + index;
            switch (field->kind) {
            case LR_YAML_COUNT_PAIR: LR_TRY(read_int(&item_target, item, 1, (int *)field->value + index)); break;
            case LR_YAML_POSITIVE_PAIR: LR_TRY(read_size(&item_target, item, false, number)); break;
            case LR_YAML_WIDTH_PAIR: LR_TRY(read_size(&item_target, item, true, number)); break;
            default: LR_TRY(read_number(&item_target, item, "a number", number));
            }
        }
        return LR_OK;
    }

    switch (field->kind) {
    case LR_YAML_TEXT: {
        char **value = field->value;
        LR_TRY(check_plainness(&target, node));
        char text[MAX_NUMBER + 1];
        size_t length = 0;
        const char *scalar = node && fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
        if (scalar == NULL || length == 0) return refuse(&target, node, "a text");
        /* Words that readers of YAML 1.1 understand as true, false or null. */
        static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"};
        const bool is_plain_text = plain_text(node, text);
        bool has_meaning = is_plain_text && (is_decimal(text) || is_not_finite(text));
        for (size_t k = 0; is_plain_text && k < sizeof(words) / sizeof(words[0]); k++)
            has_meaning = has_meaning || strcasecmp(text, words[k]) == 0;
        if (has_meaning) {
            return lr_yaml_error(target.yaml, target.at,
                                 "'%s' must be a text, and '%s' without quotes may be read as "
                                 "something else: write \"%s\"",
                                 target.key, text, text);
        }
        char *copy = lr_alloc((int64_t)length + 1, 1, "a text", target.yaml->log);
        if (copy == NULL) return LR_FAILED;
        memcpy(copy, scalar, length);
        lr_clean_text_but(copy, "\n\t");
        free(*value);
        *value = copy;
        return LR_OK;
    }

    case LR_YAML_NUMBER: return read_number(&target, node, "a number", field->value);
    case LR_YAML_POSITIVE:
    case LR_YAML_NOT_NEGATIVE: return read_size(&target, node, field->kind == LR_YAML_NOT_NEGATIVE, field->value);
    case LR_YAML_COUNT:
    case LR_YAML_INDEX: return read_int(&target, node, field->kind == LR_YAML_COUNT, field->value);
    default:
        LR_TRY(check_plainness(&target, node));
        *(struct fy_node **)field->value = node;
        return LR_OK;
    }
}

/* --- mappings --- */

static bool key_is(const char *key, size_t length, const char *name)
{
    return name != NULL && strlen(name) == length && memcmp(key, name, length) == 0;
}

lr_status lr_yaml_read_fields(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping,
                              const struct lr_yaml_field *fields, int num_fields)
{
    struct fy_node *first[MAX_FIELDS] = {NULL};
    char text[MAX_QUOTE + 16];
    const struct target target = {yaml, mapping->at, "this"};
    LR_TRY(check_plainness(&target, mapping->node));
    if (mapping->node == NULL || !fy_node_is_mapping(mapping->node)) {
        struct fy_node *at = stands_somewhere(mapping->node) ? mapping->node : mapping->at;
        return lr_yaml_error(yaml, at, "%s must be a mapping 'key: value', found %s", mapping->what,
                             quote(mapping->node, text));
    }

    void *iterator = NULL;
    struct fy_node_pair *pair;
    struct fy_node *before = NULL; /* the value before the key */
    for (; (pair = fy_node_mapping_iterate(mapping->node, &iterator)) != NULL; before = fy_node_pair_value(pair)) {
        struct fy_node *key = fy_node_pair_key(pair);
        size_t length = 0;
        const bool is_word = key != NULL && fy_node_is_scalar(key) && !fy_node_is_alias(key);
        const char *name = is_word ? fy_node_get_scalar(key, &length) : NULL; /* the text is not zero terminated */
        int k = name != NULL ? 0 : num_fields;
        while (k < num_fields && !key_is(name, length, fields[k].key) && !key_is(name, length, fields[k].other_key))
            k++;
        if (k == num_fields) {
            const char *names[MAX_FIELDS];
            char known[320] = "", word[64] = "";
            for (int n = 0; n < num_fields; n++) {
                names[n] = fields[n].key;
                lr_names_add(known, sizeof(known), names[n]);
            }
            snprintf(word, sizeof(word), "%.*s", (int)(length < 64 ? length : 63), name ? name : "");
            word[strcspn(word, "\n")] = '\0';
            struct fy_node *at = stands_somewhere(key) ? key : mapping->at;
            char whole[64] = ""; /* "radius_mm: 40,5" is read as the value 40 and the key 5 */
            const char *digits = before != NULL && fy_node_is_scalar(before) ? fy_node_get_scalar(before, &length) : "";
            snprintf(whole, sizeof(whole), "%.*s", (int)(length < 64 ? length : 63), digits != NULL ? digits : "");
            if (word[0] != '\0' && word[strspn(word, "0123456789")] == '\0' && whole[0] != '\0' &&
                whole[strspn(whole, "+-0123456789")] == '\0')
                return lr_yaml_error(yaml, at, "unknown key '%s': decimals have a point: %s.%s", word, whole, word);
            for (int n = 0; yaml->below != NULL && yaml->below[n][0] != NULL; n++) {
                if (strcmp(word, yaml->below[n][0]) == 0)
                    return lr_yaml_error(yaml, at, "unknown key '%s': it stands below '%s': indent it there", word,
                                         yaml->below[n][1]);
            }
            const char *near = lr_nearest_word(word, names, (size_t)num_fields);
            return near != NULL && word[0] != '\0'
                       ? lr_yaml_error(yaml, at, "unknown key '%s'; did you mean '%s'?", word, near)
                       : lr_yaml_error(yaml, at, "unknown key '%s'; %s has: %s", word, mapping->what, known);
        }
        if (first[k] != NULL) {
            return lr_yaml_error(yaml, key, "'%s' is given again (first in line %d): keep one", fields[k].key,
                                 lr_yaml_line(first[k]));
        }
        first[k] = key;
        if (fields[k].at != NULL) *fields[k].at = key;
        LR_TRY(lr_yaml_read_value(yaml, &fields[k], fy_node_pair_value(pair), key));
    }
    for (int k = 0; k < num_fields; k++)
        if (fields[k].required && first[k] == NULL)
            return lr_yaml_error(yaml, mapping->at, "%s lacks '%s'", mapping->what, fields[k].key);
    return LR_OK;
}

void lr_yaml_put(struct lr_output *output, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length > 0) lr_output_write(output, text, (size_t)length);
}

const char *lr_yaml_number(char text[32], double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value == 0 ? 0.0 : value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}

void lr_yaml_put_numbers(struct lr_output *output, const char *key, const double *values, int count)
{
    char text[32];
    lr_yaml_put(output, "%s: [", key);
    for (int k = 0; k < count; k++) lr_yaml_put(output, "%s%s", k ? ", " : "", lr_yaml_number(text, values[k]));
    lr_yaml_put(output, "]");
}

void lr_yaml_put_text(struct lr_output *output, const char *text, size_t length)
{
    lr_yaml_put(output, "\"");
    for (size_t k = 0; k < length; k++) {
        const unsigned char c = (unsigned char)text[k];
        if (c == '"' || c == '\\')
            lr_yaml_put(output, "\\%c", c);
        else if (c < 32 || c == 127)
            lr_yaml_put(output, "\\x%02x", c);
        else
            lr_output_write(output, &text[k], 1);
    }
    lr_yaml_put(output, "\"\n");
}
