#include "supervise/page.h"

#include <string.h>

#include "base/base64.h"
#include "base/digest.h"
#include "base/invariant.h"

enum { HASH_TEXT_BYTES = BASE64_SIZE(sizeof(struct digest)) };

void page_write(FILE *page) {
    fwrite(page_html, 1, page_html_bytes, page);
}

/* Of what stands between the two. */
static void hash_part(const char *from, const char *to, char ret[static HASH_TEXT_BYTES + 1]) {
    const char *begin = strstr((const char *)page_html, from);
    INVARIANT(begin != NULL, "the page has a style and a script");
    begin += strlen(from);
    const char *end = strstr(begin, to);
    INVARIANT(end != NULL, "the style and the script of the page end");
    struct digest digest = digest_of(slice_of(begin, (size_t)(end - begin)));
    ret[base64_encode(slice_of(digest.bytes, sizeof digest.bytes), ret)] = 0;
}

void page_policy(char ret[static PAGE_POLICY_BYTES]) {
    char style[HASH_TEXT_BYTES + 1], script[HASH_TEXT_BYTES + 1];
    hash_part("<style>", "</style>", style);
    hash_part("<script>", "</script>", script);
    snprintf(ret, PAGE_POLICY_BYTES,
        "default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        style, script);
}
