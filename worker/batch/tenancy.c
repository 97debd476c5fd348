#include "batch/tenancy.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/invariant.h"
#include "gpu/event.h"

struct tenancy {
    const struct device *device;
    struct lease_pool *leases;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a turn was taken, or the last one left */
    uint64_t next_turn;     /* for who waits next */
    uint64_t turn;          /* whose turn it is; next_turn: nobody waits */
    uint64_t inside;        /* batches of the tenant */
    struct slice tenant;    /* owned; of those inside, or of the last ones that were */
    struct tenancy_slabs *slabs;
    CUevent wiped;        /* recorded behind the last wipe */
    bool is_being_wiped;  /* and not known to be done */
    CUstream wipe_stream; /* the wipe is on */
};

enum err tenancy_create(const struct device *device, struct lease_pool *leases,
    struct tenancy **ret, struct error *err) {
    struct tenancy *tenancy = calloc(1, sizeof *tenancy);
    if (tenancy == NULL) return error_no_memory(err, "no memory to keep tenants apart");
    tenancy->device = device;
    tenancy->leases = leases;
    pthread_mutex_init(&tenancy->lock, NULL);
    pthread_cond_init(&tenancy->changed, NULL);
    enum err code = fence_take(leases, &tenancy->wiped, err);
    if (code == ERR_OK) *ret = tenancy;
    else tenancy_destroy(tenancy);
    return code;
}

void tenancy_destroy(struct tenancy *tenancy) {
    if (tenancy == NULL) return;
    INVARIANT(tenancy->slabs == NULL, "slabs are removed from their tenancy");
    if (tenancy->wiped != NULL)
        (void)!fence_release(tenancy->leases, &tenancy->wiped, &(struct error){0});
    pthread_cond_destroy(&tenancy->changed);
    pthread_mutex_destroy(&tenancy->lock);
    free((void *)(uintptr_t)tenancy->tenant.data);
    free(tenancy);
}

void tenancy_add(struct tenancy *tenancy, struct tenancy_slabs *slabs) {
    if (tenancy == NULL) return;
    pthread_mutex_lock(&tenancy->lock);
    slabs->next = tenancy->slabs;
    tenancy->slabs = slabs;
    pthread_mutex_unlock(&tenancy->lock);
}

void tenancy_remove(struct tenancy *tenancy, const struct tenancy_slabs *slabs) {
    if (tenancy == NULL) return;
    pthread_mutex_lock(&tenancy->lock);
    struct tenancy_slabs **link = &tenancy->slabs;
    while (*link != NULL && *link != slabs) link = &(*link)->next;
    if (*link != NULL) *link = slabs->next;
    pthread_mutex_unlock(&tenancy->lock);
}

/* --- wiping, with the lock held --- */

static void wipe_pinned(struct slab_use *use) {
    if (use->bytes > 0) memset(pool_block_pinned(&use->block).data, 0, use->bytes);
    use->bytes = 0;
}

static enum err wipe_device(
    struct tenancy *tenancy, struct slab_use *use, CUstream stream, struct error *err) {
    if (use->bytes == 0) return ERR_OK;
    enum err code = GPU_TRY(
        tenancy->device->driver, fill(pool_block_device(&use->block), 0, use->bytes, stream), err);
    if (code != ERR_OK) return code;
    use->bytes = 0;
    tenancy->is_being_wiped = true;
    tenancy->wipe_stream = stream;
    return ERR_OK;
}

/* So that the wipe can be waited for on other streams. */
static enum err mark_wipe(struct tenancy *tenancy, struct error *err) {
    if (!tenancy->is_being_wiped) return ERR_OK;
    struct error record_error;
    if (event_record(tenancy->device, tenancy->wiped, tenancy->wipe_stream, &record_error) ==
        ERR_OK)
        return ERR_OK;
    enum err code = stream_wait(tenancy->device, tenancy->wipe_stream, err);
    if (code == ERR_OK) tenancy->is_being_wiped = false;
    return code;
}

static enum err wipe_slabs(struct tenancy *tenancy, CUstream stream, struct error *err) {
    enum err code = ERR_OK;
    for (struct tenancy_slabs *slabs = tenancy->slabs; slabs != NULL && code == ERR_OK;
         slabs = slabs->next) {
        wipe_pinned(&slabs->upload);
        wipe_pinned(&slabs->readback);
        code = wipe_device(tenancy, &slabs->device, stream, err);
    }
    struct error mark_error;
    enum err marked = mark_wipe(tenancy, &mark_error);
    if (code != ERR_OK || marked == ERR_OK) return code;
    *err = mark_error;
    return marked;
}

/* Orders `stream` behind a wipe that another stream may still be at. */
static enum err await_wipe(struct tenancy *tenancy, CUstream stream, struct error *err) {
    if (!tenancy->is_being_wiped || tenancy->wipe_stream == stream) return ERR_OK;
    bool is_done;
    enum err code = event_poll(tenancy->device, tenancy->wiped, &is_done, err);
    if (code == ERR_OK && is_done) tenancy->is_being_wiped = false;
    if (code != ERR_OK || is_done) return code;
    return stream_wait_event(tenancy->device, stream, tenancy->wiped, err);
}

/* --- turns, with the lock held --- */

static bool is_open_to(const struct tenancy *tenancy, struct slice tenant) {
    return tenancy->inside == 0 || slice_equal(tenancy->tenant, tenant);
}

static enum err hand_over(
    struct tenancy *tenancy, struct slice tenant, CUstream stream, struct error *err) {
    uint8_t *name = malloc(tenant.size + 1);
    if (name == NULL) return error_no_memory(err, "no memory for the name of a tenant");
    enum err code = wipe_slabs(tenancy, stream, err);
    if (code != ERR_OK) {
        free(name);
        return code;
    }
    if (tenant.size > 0) memcpy(name, tenant.data, tenant.size);
    free((void *)(uintptr_t)tenancy->tenant.data);
    tenancy->tenant = slice_of(name, tenant.size);
    return ERR_OK;
}

static enum err enter(
    struct tenancy *tenancy, struct slice tenant, CUstream stream, struct error *err) {
    enum err code = await_wipe(tenancy, stream, err);
    if (code == ERR_OK && !slice_equal(tenancy->tenant, tenant))
        code = hand_over(tenancy, tenant, stream, err);
    if (code == ERR_OK) tenancy->inside++;
    return code;
}

enum err tenancy_enter(
    struct tenancy *tenancy, struct slice tenant, CUstream stream, struct error *err) {
    if (tenancy == NULL) return ERR_OK;
    pthread_mutex_lock(&tenancy->lock);
    uint64_t turn = tenancy->next_turn++;
    while (turn != tenancy->turn || !is_open_to(tenancy, tenant))
        pthread_cond_wait(&tenancy->changed, &tenancy->lock);
    tenancy->turn++;
    enum err code = enter(tenancy, tenant, stream, err);
    pthread_cond_broadcast(&tenancy->changed);
    pthread_mutex_unlock(&tenancy->lock);
    return code;
}

enum err tenancy_try_enter(struct tenancy *tenancy, struct slice tenant, CUstream stream,
    bool *ret_entered, struct error *err) {
    *ret_entered = tenancy == NULL;
    if (tenancy == NULL) return ERR_OK;
    pthread_mutex_lock(&tenancy->lock);
    bool is_free = tenancy->turn == tenancy->next_turn && is_open_to(tenancy, tenant);
    enum err code = is_free ? enter(tenancy, tenant, stream, err) : ERR_OK;
    pthread_mutex_unlock(&tenancy->lock);
    *ret_entered = is_free && code == ERR_OK;
    return code;
}

void tenancy_leave(struct tenancy *tenancy) {
    if (tenancy == NULL) return;
    pthread_mutex_lock(&tenancy->lock);
    INVARIANT(tenancy->inside > 0, "who leaves a tenancy has entered it");
    if (--tenancy->inside == 0) pthread_cond_broadcast(&tenancy->changed);
    pthread_mutex_unlock(&tenancy->lock);
}
