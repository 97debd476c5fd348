/**
 * What the supervisor knows of its executors, in the text format of Prometheus ("Exposition
 * formats", version 0.0.4). Each family of metrics has lines for each device. Private to
 * supervise/.
 */
#ifndef SUPERVISE_METRICS_PAGE_H
#define SUPERVISE_METRICS_PAGE_H

#include <stdio.h>

#include "supervise/executors.h"

#define METRICS_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

void metrics_page_write(const struct executor *executors, size_t count, FILE *page);

#endif
