/** UTF-8 strings in double quotes: one form that JSON and YAML both read. */
#ifndef SETTINGS_QUOTE_H
#define SETTINGS_QUOTE_H

#include <stdio.h>

void quote_json(const char *text, FILE *out);

/** With "$" doubled, so that the loader does not take it for a variable. */
void quote_yaml(const char *text, FILE *out);

#endif
