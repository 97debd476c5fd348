/**
 * The page at `/`: one file without outside assets, which draws what /status.json says. Private to
 * supervise/.
 *
 * It shows texts of strangers (ids of jobs, messages of errors), as text alone. Should that ever
 * fail, its policy still lets a browser run and load nothing but what stands in it. Threads: pure.
 */
#ifndef SUPERVISE_PAGE_H
#define SUPERVISE_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_TYPE "text/html; charset=utf-8"
enum { PAGE_POLICY_BYTES = 512 };

/** page.html; the build makes them of it. */
extern const uint8_t page_html[]; /* a NUL ends it */
extern const size_t page_html_bytes;

void page_write(FILE *page);

/** The Content-Security-Policy: its style and its script by their SHA-256, and this server. */
void page_policy(char ret[static PAGE_POLICY_BYTES]);

#endif
