"""A client of gpu-worker: NumPy arrays go to GPU workers through Kafka, and come back as futures.

    import gpu_worker as gw

    with gw.Client("kafka-1:9092") as client:
        saxpy = client.program("saxpy")
        future = saxpy(a=2.0, x=x, y=y)
        print(future.result(timeout=30)["y"])
"""

from .blobs import BlobStore, HttpBlobStore, Store
from .client import Client
from .files import read_results, write_jobs
from .futures import Future, MapFuture, as_completed
from .handles import Rows, Static, rows
from .job import blob, digest, encode, f32, f64, i32, i64, job, progress, static, step, u32, u64, upload, zeros
from .line import Resident
from .link import ResultsLost
from .local import LocalClient, local
from .program import Program
from .result import Ends, JobFailed, NotConverged, arrays, ends
from .watch import Progress

__all__ = [
    "BlobStore", "Client", "Ends", "Future", "HttpBlobStore", "JobFailed", "LocalClient", "MapFuture", "NotConverged",
    "Program", "Progress", "Resident", "ResultsLost", "Rows", "Static", "Store", "arrays", "as_completed", "blob",
    "digest", "encode", "ends", "f32", "f64", "i32", "i64", "job", "local", "progress", "read_results", "rows",
    "static", "step", "u32", "u64", "upload", "write_jobs", "zeros",
]
