/**
 * Programs as JSON, for clients that check arguments before they send them: a list with a map for
 * each program, in the words of its manifest. A number of a bound is a number, or a map that names
 * an argument (`{"arg": "n"}`) or a part of the launch (`{"launch": "blocks"}`).
 */
#ifndef CLI_PROGRAMS_JSON_H
#define CLI_PROGRAMS_JSON_H

#include <stdio.h>

#include "program/program.h"

void programs_print_json(const struct registry *registry, FILE *out);

#endif
