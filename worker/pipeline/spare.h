/**
 * A spare: an executor whose device, programs and memory are ready, and whose life has not begun.
 * It has no state file, no clients of brokers and no jobs. When the executor of its device dies,
 * the supervisor tells it to begin. Private to pipeline/.
 */
#ifndef PIPELINE_SPARE_H
#define PIPELINE_SPARE_H

#include "pipeline/stages.h"

/**
 * Returns ERR_OK when the life is to begin. Both sides write one byte to the socket `fd`: the spare
 * when it is ready, and then the supervisor when its life begins. Ends the process if the
 * supervisor closes the socket, or if `stop` is set. Errors: ERR_DEVICE_MEMORY, ERR_NO_MEMORY,
 * ERR_IO; a sticky code, if the context was lost meanwhile.
 */
MUST_CHECK enum err spare_wait(struct stages *stages, int fd, struct error *err);

#endif
