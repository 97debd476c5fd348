"""A client of gpu-worker: builds jobs from NumPy arrays, sends them, and reads the results.

    import gpu_worker as gw

    job = gw.job("sum-1",
        buffers={"a": gw.upload(a), "b": gw.upload(b), "c": gw.zeros(a.shape, a.dtype)},
        steps=[gw.step("vector_add", ["a", "b", "c", gw.u32(a.size)], elements=a.size)],
        outputs=["c"])
    with gw.KafkaClient("127.0.0.1:9092") as client:
        for result in client.run([job]):
            print(gw.arrays(result)["c"])
"""

from .blobs import BlobStore
from .files import read_results, write_jobs
from .job import digest, f32, f64, i32, i64, job, static, step, u32, u64, upload, zeros, blob
from .kafka import KafkaClient
from .result import JobFailed, arrays

__all__ = [
    "BlobStore", "JobFailed", "KafkaClient", "arrays", "blob", "digest", "f32", "f64", "i32", "i64", "job",
    "read_results", "static", "step", "u32", "u64", "upload", "write_jobs", "zeros",
]
