"""Continuous batching, without HTTP: many requests share one pass over the weights, and join and leave at each step.

`caches` reads tokens of several texts, `batcher` says who reads how many of them in a step, and `writing` draws what
follows; `job` is a request on its way, in `turns` those that wait; `prefixes` finds what caches hold already, `drafts`
guesses tokens ahead, `embedder` turns texts to vectors, and `worker` is the thread that works for all models.
"""

from chainrule.serve.batching.batcher import Batcher
from chainrule.serve.batching.caches import Caches, caches_of
from chainrule.serve.batching.embedder import Embedder, EmbeddingJob
from chainrule.serve.batching.job import Full, Job, Update
from chainrule.serve.batching.worker import Worker

__all__ = ["Batcher", "Caches", "Embedder", "EmbeddingJob", "Full", "Job", "Update", "Worker", "caches_of"]
