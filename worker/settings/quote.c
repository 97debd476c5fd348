#include "settings/quote.h"

#include <string.h>

/* The character of a two- or three-byte sequence; *size is the sequence's length. */
static unsigned decode(const unsigned char *c, size_t *size) {
    *size = c[0] < 0xe0 ? 2 : 3;
    if (*size == 2) return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    return (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

/* YAML takes some characters beyond ASCII for line breaks, so those of the first plane are escaped;
 * the others have no escape that both languages know. */
static void quote(const char *text, const char *doubled, FILE *out) {
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        size_t size = 1;
        if (*c < 0x20 || *c == 0x7f) fprintf(out, "\\u%04x", *c);
        else if (*c >= 0xc0 && *c < 0xf0) fprintf(out, "\\u%04x", decode(c, &size));
        else {
            if (*c == '"' || *c == '\\') fputc('\\', out);
            if (strchr(doubled, *c) != NULL) fputc(*c, out);
            fputc(*c, out);
        }
        c += size;
    }
    fputc('"', out);
}

void quote_json(const char *text, FILE *out) {
    quote(text, "", out);
}

void quote_yaml(const char *text, FILE *out) {
    quote(text, "$", out);
}
