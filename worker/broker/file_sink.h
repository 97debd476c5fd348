/**
 * A sink that writes to files: results (or telemetry) as a stream of their msgpack payloads, one
 * after the other; dead letters as one JSON object a line,
 *
 *     {"headers": [[name, value], ...], "key": value or null, "payload": value}
 *
 * where a value is a string if its bytes are UTF-8 text, and {"hex": "00ff.."} if they are not, so
 * that nothing is lost. Routes decide the file; the topic of a record is not used.
 *
 * A record is settled when the system has taken its bytes (no fsync). When writing fails, the file
 * is cut after its last whole record, what is not in it is settled with ERR_IO, and so is all that
 * comes later: the sink is lost. A pipe cannot be cut; SIGPIPE is the caller's to ignore.
 */
#ifndef BROKER_FILE_SINK_H
#define BROKER_FILE_SINK_H

#include "broker/file_progress.h"
#include "broker/sink.h"

/**
 * Both files are replaced, or cut back to where `progress` (NULL: none is kept) has them; "-" is
 * standard output. With `dead_letters_path` NULL dead letters are
 * settled with ERR_OK and written nowhere: results tell of the same failures, and the log of
 * messages that were no jobs. ERR_IO where a file cannot be opened.
 */
MUST_CHECK enum err file_sink_create(const char *results_path, const char *dead_letters_path,
    struct file_progress *progress, struct sink **ret, struct error *err);

/** A sink without dead letters that adds to the file. */
MUST_CHECK enum err file_sink_append(const char *path, struct sink **ret, struct error *err);

#endif
