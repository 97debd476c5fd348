/**
 * Reads program.yaml, in which a program's author describes it. Strict: an unknown key, an unknown
 * role or a file outside the program's folder is a problem with its position.
 */
#ifndef PROGRAM_MANIFEST_H
#define PROGRAM_MANIFEST_H

#include "base/arena.h"
#include "base/yaml.h"
#include "program/program.h"

/**
 * Reads a manifest into *ret, whose strings and arrays live in `arena`; images have no bytes yet.
 * False, with problems added, if anything is wrong; *ret must not be used then.
 */
bool manifest_read(const struct yaml_document *document, struct arena *arena, struct program *ret,
    struct problems *problems);

#endif
