/**
 * What the stages share and no job passes through: the device, its programs and memory, and the
 * blob store, made from the settings. Rows of the table in stages.c, which says when.
 *
 * Every destroy() copes with what was not made. Private to pipeline/.
 */
#ifndef PIPELINE_RESOURCES_H
#define PIPELINE_RESOURCES_H

#include "pipeline/stages.h"

MUST_CHECK enum err resources_open_device(struct stages *stages, struct error *err);
void resources_close_device(struct stages *stages);

/** As the supervisor saw them, in modules that are loaded when a job first needs them. */
MUST_CHECK enum err resources_load_programs(struct stages *stages, struct error *err);
void resources_drop_programs(struct stages *stages);

/** None where the settings name no store. */
MUST_CHECK enum err resources_open_blobs(struct stages *stages, struct error *err);
void resources_close_blobs(struct stages *stages);

/** Device and pinned memory, streams, and what keeps tenants apart in them. */
MUST_CHECK enum err resources_create_pools(struct stages *stages, struct error *err);
void resources_destroy_pools(struct stages *stages);

MUST_CHECK enum err resources_create_statics(struct stages *stages, struct error *err);
void resources_destroy_statics(struct stages *stages);

/** None with `ordering: none`. */
MUST_CHECK enum err resources_create_residents(struct stages *stages, struct error *err);
void resources_destroy_residents(struct stages *stages);

#endif
