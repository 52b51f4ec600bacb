/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * SHA-256 against the digests of FIPS 180-4's examples (NIST, "Examples with Intermediate Values"),
 * and the same digest however a message is cut. */
#include "cases.h"

#include "base/hash.h"

static const char *digest(const void *bytes, size_t count, size_t piece, char text[lr_sha256_chars])
{
    struct lr_sha256 sha;
    lr_sha256_begin(&sha);
    for (size_t at = 0; at < count; at += piece)
        lr_sha256_add(&sha, (const char *)bytes + at, count - at < piece ? count - at : piece);
    return lr_sha256_end(&sha, text);
}

static void examples(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char text[lr_sha256_chars];
    assert_string_equal(digest("", 0, 1, text), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(digest("abc", 3, 3, text), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(digest(two_blocks, 56, 56, text),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    assert_string_equal(digest(million, 1000000, 1000000, text),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void cuts_do_not_matter(void **state)
{
    unsigned char bytes[300];
    for (size_t k = 0; k < sizeof(bytes); k++) bytes[k] = (unsigned char)(7 * k);
    for (size_t count = 0; count <= sizeof(bytes); count++) {
        char whole[lr_sha256_chars], cut[lr_sha256_chars];
        digest(bytes, count, sizeof(bytes), whole);
        for (size_t piece = 1; piece < 130; piece += 9) assert_string_equal(digest(bytes, count, piece, cut), whole);
    }
}

test_main("unit: sha256", cmocka_unit_test(examples), cmocka_unit_test(cuts_do_not_matter))
