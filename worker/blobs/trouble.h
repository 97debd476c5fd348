/** `trouble` of an ERR_IO from the store (struct error): its disk is full, or anything else. */
#ifndef BLOBS_TROUBLE_H
#define BLOBS_TROUBLE_H

#define BLOBS_TROUBLE "blob_store"
#define BLOBS_DISK_FULL "disk_full"

#endif
