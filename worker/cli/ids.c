#include "cli/ids.h"

#include <string.h>

bool id_answers_to(struct slice id, const char *asked) {
    size_t size = strlen(asked);
    return id.size >= size && memcmp(id.data, asked, size) == 0 &&
           (id.size == size || id.data[size] == ':');
}
