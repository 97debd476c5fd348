/**
 * A sink that writes to files: results (or telemetry) as a stream of their msgpack payloads, one
 * after the other; dead letters as one JSON object a line,
 *
 *     {"headers": [[name, value], ...], "key": value or null, "payload": value}
 *
 * where a value is a string if its bytes are UTF-8 text, and {"hex": "00ff.."} if they are not, so
 * that nothing is lost. Routes decide the file; the topic of a record is not used.
 *
 * A record is settled when the system has accepted its bytes (no fsync). If writing fails, the file
 * is truncated after its last whole record; records that are not in it, and all later ones, are
 * settled with ERR_IO: the sink is lost. A pipe cannot be truncated. The caller must ignore
 * SIGPIPE.
 */
#ifndef BROKER_FILE_SINK_H
#define BROKER_FILE_SINK_H

#include "broker/file_progress.h"
#include "broker/sink.h"

/**
 * Both files are replaced, or truncated to the lengths in `progress` (NULL: none is kept); "-" is
 * standard output. If `dead_letters_path` is NULL, dead letters are settled with ERR_OK and not
 * written: results report the same failures, and the log names messages that could not be decoded.
 * Errors: ERR_IO, if a file cannot be opened.
 */
MUST_CHECK enum err file_sink_create(const char *results_path, const char *dead_letters_path,
    struct file_progress *progress, struct sink **ret, struct error *err);

/** A sink that appends to the file, and has no dead letters. */
MUST_CHECK enum err file_sink_append(const char *path, struct sink **ret, struct error *err);

#endif
