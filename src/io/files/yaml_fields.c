/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 16, MAX_NUMBER = 63, MAX_QUOTE = 40 };

/* What is being read, for sentences: "pitch_mm[1]". */
struct target {
    const struct lr_yaml *yaml;
    struct fy_node *at;
    char key[64];
};

/* --- scalars --- */

/* An empty value ("key:") stands nowhere. */
static bool stands_somewhere(struct fy_node *node)
{
    return node != NULL && (!fy_node_is_scalar(node) || fy_token_start_mark(fy_node_get_scalar_token(node)) != NULL);
}

static bool is_plain(struct fy_node *node)
{
    return fy_node_get_style(node) == FYNS_PLAIN;
}

/* What stands there, short enough for a sentence. */
static const char *quote(struct fy_node *node, char out[MAX_QUOTE + 16])
{
    size_t length = 0;
    const char *text = node && fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (node && fy_node_is_mapping(node)) return "a mapping {...}";
    if (node && fy_node_is_sequence(node)) return "a list [...]";
    if (text == NULL || (length == 0 && is_plain(node))) return "nothing";
    const char *feed = memchr(text, '\n', length);
    size_t shown = feed ? (size_t)(feed - text) : length;
    const bool cut = shown > MAX_QUOTE - 16;
    if (cut) {
        shown = MAX_QUOTE - 16;
        while (shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80) shown--; /* do not cut inside a character */
    }
    snprintf(out, MAX_QUOTE + 16, "%s%.*s%s", is_plain(node) ? "'" : "the quoted text '", (int)shown, text,
             cut ? "...'" : "'");
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

static const char *skip_digits(const char *text)
{
    while (isdigit((unsigned char)*text)) text++;
    return text;
}

/* [-+]? (digits [. digits?] | . digits) ([eE] [-+]? digits)?, the core schema's decimal numbers. */
static bool is_decimal(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    const char *whole_end = skip_digits(at);
    const bool has_whole = whole_end > at;
    at = whole_end;
    if (*at == '.') {
        const char *fraction_end = skip_digits(at + 1);
        if (!has_whole && fraction_end == at + 1) return false;
        at = fraction_end;
    } else if (!has_whole) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '-' || at[1] == '+');
        const char *exponent_end = skip_digits(at);
        if (exponent_end == at) return false;
        at = exponent_end;
    }
    return *at == '\0';
}

/* .inf, -.inf, .nan and what strtod would take */
static bool is_not_finite(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    at += *at == '.';
    char lower[8] = "";
    for (size_t k = 0; k < sizeof(lower) - 1 && at[k] != '\0'; k++) lower[k] = (char)tolower((unsigned char)at[k]);
    return strcmp(lower, "inf") == 0 || strcmp(lower, "nan") == 0 || strcmp(lower, "infinit") == 0;
}

/* A plain scalar as a C string; false when it is none or too long for a number. */
static bool plain_text(struct fy_node *node, char text[MAX_NUMBER + 1])
{
    size_t length = 0;
    const char *scalar = node && fy_node_is_scalar(node) && is_plain(node) ? fy_node_get_scalar(node, &length) : NULL;
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

/* What YAML 1.1 readers take for a truth value or nothing. */
static bool is_word_with_meaning(const char *text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"};
    char lower[8] = "";
    for (size_t k = 0; k < sizeof(lower) - 1 && text[k] != '\0'; k++) lower[k] = (char)tolower((unsigned char)text[k]);
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
        if (strcmp(lower, words[k]) == 0) return true;
    return false;
}

static lr_status read_text(const struct target *target, struct fy_node *node, char **value)
{
    LR_TRY(check_plainness(target, node));
    char text[MAX_NUMBER + 1];
    size_t length = 0;
    const char *scalar = node && fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (scalar == NULL || length == 0) return refuse(target, node, "a text");
    if (plain_text(node, text) && (is_word_with_meaning(text) || is_decimal(text) || is_not_finite(text))) {
        return lr_yaml_error(target->yaml, target->at,
                             "'%s' must be a text, and '%s' without quotes may be read as "
                             "something else: write \"%s\"",
                             target->key, text, text);
    }
    char *copy = lr_alloc((int64_t)length + 1, 1, "a text", lr_yaml_log(target->yaml));
    if (copy == NULL) return LR_FAILED;
    memcpy(copy, scalar, length);
    lr_clean_text_but(copy, "\n\t");
    free(*value);
    *value = copy;
    return LR_OK;
}

/* --- lists of a fixed length --- */

static bool takes_list(enum lr_yaml_kind kind)
{
    return kind == LR_YAML_COUNT_PAIR || kind == LR_YAML_POSITIVE_PAIR || kind == LR_YAML_WIDTH_PAIR ||
           kind == LR_YAML_NUMBER_PAIR || kind == LR_YAML_VECTOR;
}

static lr_status read_item(const struct target *target, enum lr_yaml_kind kind, struct fy_node *node, void *list,
                           int index)
{
    switch (kind) {
    case LR_YAML_COUNT_PAIR: return read_int(target, node, 1, (int *)list + index);
    case LR_YAML_POSITIVE_PAIR:
    case LR_YAML_WIDTH_PAIR: return read_size(target, node, kind == LR_YAML_WIDTH_PAIR, (double *)list + index);
    default: return read_number(target, node, "a number", (double *)list + index);
    }
}

static lr_status read_list(const struct target *target, enum lr_yaml_kind kind, struct fy_node *node, void *list)
{
    const int wanted = kind == LR_YAML_VECTOR ? 3 : 2;
    LR_TRY(check_plainness(target, node));
    if (node == NULL || !fy_node_is_sequence(node)) {
        return refuse(target, node,
                      wanted == 3 ? "a list of 3 numbers [x, y, z]" : "a list of 2 numbers [along u, along v]");
    }
    const int count = fy_node_sequence_item_count(node);
    if (count != wanted) {
        return lr_yaml_error(target->yaml, target->at, "'%s' must be a list of %d numbers, found %d", target->key,
                             wanted, count);
    }
    void *iterator = NULL;
    for (int index = 0; index < wanted; index++) {
        struct fy_node *item = fy_node_sequence_iterate(node, &iterator);
        struct target item_target = {target->yaml, stands_somewhere(item) ? item : target->at, ""};
        snprintf(item_target.key, sizeof(item_target.key), "%.40s[%d]", target->key, index);
        LR_TRY(read_item(&item_target, kind, item, list, index));
    }
    return LR_OK;
}

lr_status lr_yaml_read_value(const struct lr_yaml *yaml, const struct lr_yaml_field *field, struct fy_node *node,
                             struct fy_node *at)
{
    struct target target = {yaml, stands_somewhere(node) ? node : at, ""};
    snprintf(target.key, sizeof(target.key), "%s", field->key);
    if (takes_list(field->kind)) return read_list(&target, field->kind, node, field->value);
    switch (field->kind) {
    case LR_YAML_TEXT: return read_text(&target, node, field->value);
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

/* The text of a key that is a plain word, or NULL. Not zero terminated. */
static const char *key_text(struct fy_node *key, size_t *length)
{
    *length = 0;
    const bool usable = key && fy_node_is_scalar(key) && !fy_node_is_alias(key);
    return usable ? fy_node_get_scalar(key, length) : NULL;
}

static int find_field(const struct lr_yaml_field *fields, int num_fields, const char *key, size_t length)
{
    for (int k = 0; k < num_fields; k++)
        if (key_is(key, length, fields[k].key) || key_is(key, length, fields[k].other_key)) return k;
    return -1;
}

static lr_status refuse_key(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping, struct fy_node *key,
                            const struct lr_yaml_field *fields, int num_fields)
{
    const char *names[MAX_FIELDS];
    char known[320] = "";
    for (int k = 0; k < num_fields; k++) {
        names[k] = fields[k].key;
        const size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", k ? ", " : "", names[k]);
    }
    size_t length = 0;
    const char *text = key_text(key, &length);
    char word[64] = "";
    snprintf(word, sizeof(word), "%.*s", (int)(length < 64 ? length : 63), text ? text : "");
    word[strcspn(word, "\n")] = '\0';
    struct fy_node *at = stands_somewhere(key) ? key : mapping->at;
    const char *near = lr_nearest_word(word, names, (size_t)num_fields);
    if (near != NULL && length > 0) return lr_yaml_error(yaml, at, "unknown key '%s'; did you mean '%s'?", word, near);
    return lr_yaml_error(yaml, at, "unknown key '%s'; %s has: %s", word, mapping->what, known);
}

static lr_status read_pair(const struct lr_yaml *yaml, const struct lr_yaml_field *field, struct fy_node_pair *pair,
                           struct fy_node **first)
{
    struct fy_node *key = fy_node_pair_key(pair);
    if (*first != NULL) {
        return lr_yaml_error(yaml, key, "'%s' is given again (first in line %d): keep one", field->key,
                             lr_yaml_line(*first));
    }
    *first = key;
    if (field->at != NULL) *field->at = key;
    return lr_yaml_read_value(yaml, field, fy_node_pair_value(pair), key);
}

static lr_status check_mapping(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping)
{
    char text[MAX_QUOTE + 16];
    const struct target target = {yaml, mapping->at, "this"};
    LR_TRY(check_plainness(&target, mapping->node));
    if (mapping->node == NULL || !fy_node_is_mapping(mapping->node)) {
        struct fy_node *at = stands_somewhere(mapping->node) ? mapping->node : mapping->at;
        return lr_yaml_error(yaml, at, "%s must be a mapping 'key: value', found %s", mapping->what,
                             quote(mapping->node, text));
    }
    return LR_OK;
}

lr_status lr_yaml_read_fields(const struct lr_yaml *yaml, const struct lr_yaml_mapping *mapping,
                              const struct lr_yaml_field *fields, int num_fields)
{
    struct fy_node *first[MAX_FIELDS] = {NULL};
    LR_TRY(check_mapping(yaml, mapping));
    void *iterator = NULL;
    struct fy_node_pair *pair;
    while ((pair = fy_node_mapping_iterate(mapping->node, &iterator)) != NULL) {
        struct fy_node *key = fy_node_pair_key(pair);
        size_t length = 0;
        const char *name = key_text(key, &length);
        const int k = name ? find_field(fields, num_fields, name, length) : -1;
        if (k < 0) return refuse_key(yaml, mapping, key, fields, num_fields);
        LR_TRY(read_pair(yaml, &fields[k], pair, &first[k]));
    }
    for (int k = 0; k < num_fields; k++)
        if (fields[k].required && first[k] == NULL)
            return lr_yaml_error(yaml, mapping->at, "%s lacks '%s'", mapping->what, fields[k].key);
    return LR_OK;
}
