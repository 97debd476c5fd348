/**
 * The status of the worker as JSON (schemas/status.schema.json): for the page, for `gpu-worker
 * top`, and for other readers that do not use metrics. Counts start when this worker starts.
 * Private to supervise/. Threads: the supervisor's only.
 */
#ifndef SUPERVISE_STATUS_H
#define SUPERVISE_STATUS_H

#include "supervise/health.h"

#define STATUS_TYPE "application/json"

void status_write(const struct health *health, FILE *page);

#endif
