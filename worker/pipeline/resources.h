/**
 * What all stages use and no job passes through: the device, its programs and memory, and the blob
 * store. They are made from the settings, as rows of the table in lifecycle.c, which decides when.
 *
 * Every destroy function accepts that its part was never made. Private to pipeline/.
 */
#ifndef PIPELINE_RESOURCES_H
#define PIPELINE_RESOURCES_H

#include "pipeline/stages.h"

MUST_CHECK enum err resources_open_device(struct stages *stages, struct error *err);
void resources_close_device(struct stages *stages);

/** The programs that the supervisor read. A module is loaded when a job first needs it. */
MUST_CHECK enum err resources_load_programs(struct stages *stages, struct error *err);
void resources_drop_programs(struct stages *stages);

/** Opens nothing where the settings name no store. */
MUST_CHECK enum err resources_open_blobs(struct stages *stages, struct error *err);
void resources_close_blobs(struct stages *stages);

/** Device and pinned memory, streams, and the isolation of tenants in them. */
MUST_CHECK enum err resources_create_pools(struct stages *stages, struct error *err);
void resources_destroy_pools(struct stages *stages);

/**
 * Takes from the driver what lanes and preparation take as soon as they start, into the caches of
 * the pools: pinned memory costs most of a start.
 */
MUST_CHECK enum err resources_fill_pools(struct stages *stages, struct error *err);

/** What statics may take. */
uint64_t resources_statics_bytes(const struct stages *stages);

MUST_CHECK enum err resources_create_statics(struct stages *stages, struct error *err);
void resources_destroy_statics(struct stages *stages);

/** Creates nothing with `ordering: none`. */
MUST_CHECK enum err resources_create_residents(struct stages *stages, struct error *err);
void resources_destroy_residents(struct stages *stages);

#endif
