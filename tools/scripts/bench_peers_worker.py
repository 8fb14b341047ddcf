"""Times other people's losses: the half of bench_peers.py that runs in the virtual environment with PyTorch.

Reads one JSON object a line from standard input, {peer, n, dim, per_class, repeats, file}, and answers each
with one line: {times_ms} of forward and backward of that peer, or {error}. Where `file` is given, the answer
has also the `loss` of a harder batch, which is written to that HDF5 file, so that the caller can compare its
own value. Memory is limited, so that code with O(N^3) tensors ends in an error instead of taking the machine
down.

The authors' modules are imported from clones as they are. They were written for PyTorch of their day and for
a GPU; so here .byte() returns a boolean mask, heaviside(), which has no derivative, a constant, and on the CPU
.cuda() the tensor itself. On a GPU everything is made there, and a time ends when the GPU has done the work.
"""
import importlib
import importlib.util
import json
import os
import resource
import sys
import time
import types

import numpy
import torch
from pytorch_metric_learning import distances, losses, miners, reducers


def embeddings(n, dim, per_class, pull):
    """Unit vectors around random centres, classes in a row; with pull = 1 the distribution `bench loss` draws
    from."""
    random = numpy.random.default_rng(0)
    labels = numpy.arange(n) // per_class
    centres = random.standard_normal((labels[-1] + 1, dim))
    points = random.standard_normal((n, dim)) + pull * centres[labels]
    points /= numpy.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(numpy.float32), labels.astype(numpy.int64), centres.astype(numpy.float32)


class Case:
    """What a peer is built for."""

    def __init__(self, n, dim, per_class, authors, pull=1.0):
        points, labels, centres = embeddings(n, dim, per_class, pull)
        self.n, self.dim, self.per_class, self.classes = n, dim, per_class, len(centres)
        device = torch.get_default_device()
        self.embeddings = torch.from_numpy(points).to(device).requires_grad_()
        self.labels = torch.from_numpy(labels).to(device)
        self.centres = torch.from_numpy(centres).to(device)
        self.authors = authors

    def package(self, name, folder):
        """Package `name` = the modules in `folder`, without running its __init__, which imports solvers and
        configuration that no loss needs."""
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(self.authors, folder)]
        sys.modules[name] = module
        return module

    def module(self, path):
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3] + "_of_peer",
                                                      os.path.join(self.authors, path))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def similarity(self):
        return self.embeddings @ self.embeddings.t()

    def gallery(self, matrix):
        """Without the diagonal: [n, n] to [n, n - 1]."""
        keep = ~torch.eye(self.n, dtype=torch.bool)
        return matrix[keep].view(self.n, self.n - 1)

    def same_class(self):
        return (self.labels[:, None] == self.labels[None, :]).float()


# pytorch-metric-learning ---------------------------------------------------------------------------


def pml(loss, miner=None):
    """A builder: loss(case) and miner() make the objects, the result calls them."""

    def build(case):
        function = loss(case)
        mine = miner() if miner else None

        def run():
            pairs = mine(case.embeddings, case.labels) if mine else None
            return function(case.embeddings, case.labels, pairs)

        return run, [p for p in function.parameters() if p.requires_grad]

    return build


def pml_pnp(variant):
    return pml(lambda case: losses.PNPLoss(b=2, alpha=1, anneal=0.01, variant=variant))


def with_proxies(function, case, weight, transposed):
    """Gives the peer the proxies that our side gets, so that the values can be compared."""
    with torch.no_grad():
        weight(function).copy_(case.centres.t() if transposed else case.centres)
    return function


def pml_softmax(case):
    function = losses.NormalizedSoftmaxLoss(case.classes, case.dim, temperature=0.1)
    return with_proxies(function, case, lambda f: f.W, transposed=True)


def pml_proxy_anchor(case):
    function = losses.ProxyAnchorLoss(case.classes, case.dim, margin=0.1, alpha=32)
    return with_proxies(function, case, lambda f: f.proxies, transposed=False)


# The authors ---------------------------------------------------------------------------------------


def authors_fastap(case):
    function = case.module("FastAP-metric-learning/pytorch/FastAP_loss.py").FastAPLoss(num_bins=10)
    return lambda: function(case.embeddings, case.labels), []


def authors_smooth_ap(case):
    module = case.module("Smooth_AP/src/Smooth_AP_loss.py")
    function = module.SmoothAP(0.01, case.n, case.classes, case.dim)
    return lambda: function(case.embeddings), []


def authors_pnp(variant):
    def build(case):
        options = types.SimpleNamespace(b=2, alpha=1, anneal=0.01, variant=variant, bs=case.n,
                                        samples_per_class=case.per_class, embed_dim=case.dim)
        function = case.module("PNPloss/criteria/PNP.py").Criterion(options)
        return lambda: function(case.embeddings, case.labels), []

    return build


def rambo_modules(case):
    case.package("blackbox_backprop", "blackbox-backprop/blackbox_backprop")
    return (importlib.import_module("blackbox_backprop.recall"),
            importlib.import_module("blackbox_backprop.mAP"))


def authors_rambo_recall(weight):
    def build(case):
        recall, _ = rambo_modules(case)
        function = recall.RecallLoss(lambda_val=4.0, margin=0.02, weight_fn=weight)
        targets = case.gallery(case.same_class())
        return lambda: function(case.gallery(case.similarity()), targets), []

    return build


def authors_rambo_ap(case):
    _, mean_ap = rambo_modules(case)
    function = mean_ap.MapLoss(lambda_val=4.0, margin=0.02, interclass_coef=0.0, batch_memory=1)
    targets = case.gallery(case.same_class()).t()
    # Only the ranking of each query's gallery; their forward() adds a ranking of all scores.
    return lambda: function.raw_map_computation(case.gallery(case.similarity()).t(), targets), []


def authors_recall_at_k(case):
    module = case.module("RecallatK_surrogate/src/losses.py")
    ks = [1, 2, 4, 8, 16]
    function = module.RecallatK(0.01, case.n, case.classes, case.dim, ks, [1.0] * len(ks), mixup=False)
    return lambda: sum(function(case.embeddings, q) for q in range(case.n)), []


def roadmap_modules(case):
    case.package("roadmap", "ROADMAP/roadmap")
    utils = case.package("roadmap.utils", "ROADMAP/roadmap/utils")
    matrix = importlib.import_module("roadmap.utils.create_label_matrix")
    utils.create_label_matrix = matrix.create_label_matrix
    sys.modules["roadmap"].utils = utils
    case.package("roadmap.losses", "ROADMAP/roadmap/losses")
    return (importlib.import_module("roadmap.losses.smooth_rank_ap"),
            importlib.import_module("roadmap.losses.calibration_loss"))


def authors_roadmap(case):
    smooth_rank_ap, calibration = roadmap_modules(case)
    sup_ap = smooth_rank_ap.SupAP(tau=0.01, rho=100, offset=None, delta=0.05)
    calibrate = calibration.CalibrationLoss(pos_margin=0.9, neg_margin=0.6)
    targets = case.same_class()

    def run():
        return (0.5 * sup_ap(case.similarity(), targets)
                + 0.5 * calibrate(case.embeddings, case.labels))

    return run, []


def authors_multi_similarity(case):
    for name in ("ret_benchmark", "ret_benchmark.losses", "ret_benchmark.utils"):
        case.package(name, "research-ms-loss/" + name.replace(".", "/"))
    module = importlib.import_module("ret_benchmark.losses.multi_similarity_loss")
    settings = types.SimpleNamespace(SCALE_POS=2.0, SCALE_NEG=50.0)
    settings = types.SimpleNamespace(MULTI_SIMILARITY_LOSS=settings)
    function = module.MultiSimilarityLoss(types.SimpleNamespace(LOSSES=settings))
    return lambda: function(case.embeddings, case.labels), []


def authors_proxy_anchor(case):
    module = case.module("Proxy-Anchor-CVPR2020/code/losses.py")
    function = module.Proxy_Anchor(case.classes, case.dim, mrg=0.1, alpha=32)
    function.proxies = torch.nn.Parameter(case.centres.clone())
    return lambda: function(case.embeddings, case.labels), [function.proxies]


def log(x):
    return torch.log(1 + x)


def loglog(x):
    return torch.log(1 + torch.log(1 + x))


def mean_of_triplets(miner):
    """The mean over the batch where the hardest are mined, else over the triplets with a loss above 0."""
    reducer = reducers.MeanReducer if miner else reducers.AvgNonZeroReducer
    return pml(lambda case: losses.TripletMarginLoss(margin=0.3, reducer=reducer()), miner)


PEERS = {
    "pml FastAPLoss": pml(lambda case: losses.FastAPLoss(num_bins=10)),
    "pml SmoothAPLoss": pml(lambda case: losses.SmoothAPLoss(temperature=0.01)),
    "pml PNPLoss O": pml_pnp("O"),
    "pml PNPLoss Iu": pml_pnp("Iu"),
    "pml PNPLoss Ib": pml_pnp("Ib"),
    "pml PNPLoss Ds": pml_pnp("Ds"),
    "pml PNPLoss Dq": pml_pnp("Dq"),
    "pml TripletMarginLoss, BatchHardMiner": mean_of_triplets(miners.BatchHardMiner),
    "pml TripletMarginLoss": mean_of_triplets(None),
    "pml NormalizedSoftmaxLoss": pml(pml_softmax),
    "pml ContrastiveLoss": pml(lambda case: losses.ContrastiveLoss(
        pos_margin=0.9, neg_margin=0.4, distance=distances.CosineSimilarity())),
    "pml HistogramLoss": pml(lambda case: losses.HistogramLoss(n_bins=100)),
    "pml MultiSimilarityLoss": pml(lambda case: losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)),
    "pml ProxyAnchorLoss": pml(pml_proxy_anchor),
    "authors FastAP": authors_fastap,
    "authors Smooth-AP": authors_smooth_ap,
    "authors PNP-O": authors_pnp("PNP-O"),
    "authors PNP-I_u": authors_pnp("PNP-I_u"),
    "authors PNP-I_b": authors_pnp("PNP-I_b"),
    "authors PNP-D_s": authors_pnp("PNP-D_s"),
    "authors PNP-D_q": authors_pnp("PNP-D_q"),
    "authors RaMBO RecallLoss log": authors_rambo_recall(log),
    "authors RaMBO RecallLoss loglog": authors_rambo_recall(loglog),
    "authors RaMBO MapLoss": authors_rambo_ap,
    "authors Recall@k": authors_recall_at_k,
    "authors ROADMAP": authors_roadmap,
    "authors Multi-Similarity": authors_multi_similarity,
    "authors Proxy-Anchor": authors_proxy_anchor,
}


def value(request, authors):
    """The loss of a batch whose classes overlap: none of the losses is close to 0 there."""
    import h5py  # the only place that needs it

    case = Case(request["n"], request["dim"], request["per_class"], authors, pull=0.25)
    with h5py.File(request["file"], "w", libver=("v108", "v110")) as file:
        file["embeddings"] = case.embeddings.detach().cpu().numpy()
        file["labels"] = case.labels.cpu().numpy()
        file["proxies"] = case.centres.cpu().numpy()
    run, _ = PEERS[request["peer"]](case)
    return float(run().detach().sum())


def answer(request, authors):
    case = Case(request["n"], request["dim"], request["per_class"], authors)
    run, parameters = PEERS[request["peer"]](case)
    on_gpu = case.embeddings.is_cuda
    warm_up = 5 if on_gpu else 1
    times = []
    for _ in range(request["repeats"] + warm_up):
        case.embeddings.grad = None
        for parameter in parameters:
            parameter.grad = None
        if on_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        run().sum().backward()
        if on_gpu:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    result = {"times_ms": times[warm_up:]}
    if "file" in request and importlib.util.find_spec("h5py"):
        result["loss"] = value(request, authors)
    return result


def main():
    threads, memory, authors, device = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(threads)
    torch.set_default_device(device)
    if device == "cuda":
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory / torch.cuda.mem_get_info()[1]))
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *unused, **named: self
    torch.Tensor.byte = torch.Tensor.bool
    heaviside = torch.heaviside
    torch.heaviside = lambda x, values: heaviside(x.detach(), values)
    answers = os.fdopen(os.dup(1), "w")  # keeps what the peers print apart from the answers
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            result = answer(json.loads(line), authors)
        except Exception as error:  # any exception of a peer is its result
            text = " ".join(str(error).split())
            memory_ran_out = isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)) or (
                "allocate memory" in text)
            result = {"error": "out of memory" if memory_ran_out else
                      f"{type(error).__name__}: {text[:160]}"}
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
