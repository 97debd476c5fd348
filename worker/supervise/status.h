/**
 * How the worker stands, as JSON (schemas/status.schema.json): for the page, for `gpu-worker top`,
 * and for whoever does not want to read metrics. Counts are since the start of this worker.
 * Private to supervise/.
 */
#ifndef SUPERVISE_STATUS_H
#define SUPERVISE_STATUS_H

#include "supervise/health.h"

#define STATUS_TYPE "application/json"

void status_write(const struct health *health, FILE *page);

#endif
