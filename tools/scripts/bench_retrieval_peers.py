#!/usr/bin/env python3
"""Recall@k of a whole test set on a GPU beside `bench eval`, in turn: one block of queries after the other, torch's
matrix product and topk, and faiss's exact search where faiss-gpu is there. Ours gives all metrics, theirs R@k alone.
The vectors are drawn alike but not the same, so that R@1 differs by chance: by a few thousandths at the size of the
example. More is a mistake of one of them, and the exit code 1.

Needs torch in the Python that runs it.

  tools/scripts/bench_retrieval_peers.py --bench build/bin/bench --n 60502 --dim 512 --classes 11316 --json eval.json
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

MOST_APART = 0.01  # difference of R@1 between two sets of the same distribution


def embeddings(options):
    """Unit vectors of classes of equal size around random centres, as make_set of tools/bench/bench_eval.cpp has
    them: the noise is twice as long as the centre."""
    torch.manual_seed(0)
    labels = torch.arange(options.n, device="cuda") * options.classes // options.n
    centres = torch.randn(options.classes, options.dim, device="cuda")
    points = centres[labels] + 2 * torch.randn(options.n, options.dim, device="cuda")
    return torch.nn.functional.normalize(points), labels


def with_torch(points, labels, options):
    """R@k by a product and topk a block; the query itself is left out by its index."""
    hits = torch.zeros(options.k, device="cuda")
    for begin in range(0, len(points), options.block):
        block = points[begin:begin + options.block]
        scores = block @ points.t()
        scores[torch.arange(len(block)), begin + torch.arange(len(block))] = -torch.inf
        nearest = scores.topk(options.k, dim=1).indices
        found = labels[nearest] == labels[begin:begin + len(block), None]
        hits += found.cumsum(dim=1).clamp(max=1).sum(dim=0)
    return (hits / len(points)).tolist()


def with_faiss(points, labels, options):
    import faiss
    import faiss.contrib.torch_utils  # tensors of the GPU as they are

    _, nearest = faiss.knn_gpu(faiss.StandardGpuResources(), points, points, options.k + 1,
                               metric=faiss.METRIC_INNER_PRODUCT)
    own = nearest == torch.arange(len(points), device="cuda")[:, None]
    # If ties push the query itself out of the list, the last place is dropped instead.
    own[:, -1] |= ~own.any(dim=1)
    nearest = nearest[~own].view(len(points), options.k)
    found = labels[nearest] == labels[:, None]
    return found.cumsum(dim=1).clamp(max=1).float().mean(dim=0).tolist()


def timed(search, points, labels, options):
    """Milliseconds and R@1, or why there are none."""
    try:
        times = []
        for _ in range(options.repeats + 1):
            torch.cuda.synchronize()
            start = time.perf_counter()
            recall = search(points, labels, options)
            torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - start))
        return {"total_ms": statistics.median(times[1:]), "recall_at_1": recall[0]}
    except Exception as error:  # the other measurements go on
        return {"why": f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"}


def ours(options):
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "eval.json")
        command = [options.bench, "eval", "--device", "cuda", "--n", str(options.n), "--dim", str(options.dim),
                   "--classes", str(options.classes), "--repeats", str(options.repeats), "--json", result]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=options.limit)
        except subprocess.TimeoutExpired:
            return {"why": f"bench eval was not through after {options.limit} s"}
        if done.returncode != 0:
            return {"why": (done.stderr.strip().splitlines() or ["no word"])[-1]}
        with open(result, encoding="utf-8") as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/bin/bench")
    parser.add_argument("--n", type=int, default=60502, help="rows (60502, Stanford Online Products)")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=11316)
    parser.add_argument("--k", type=int, default=1000, help="neighbours of each (1000)")
    parser.add_argument("--block", type=int, default=4096, help="queries at a time for torch (4096)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=int, default=600, help="seconds for bench eval (600); ended if it takes longer")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this PyTorch finds no GPU")
    points, labels = embeddings(options)
    torch.backends.cuda.matmul.allow_tf32 = False
    found = {"torch matmul and topk, fp32": timed(with_torch, points, labels, options)}
    torch.backends.cuda.matmul.allow_tf32 = True
    found["torch matmul and topk, tf32"] = timed(with_torch, points, labels, options)
    found["faiss knn_gpu"] = timed(with_faiss, points, labels, options)
    del points, labels
    torch.cuda.empty_cache()
    mine = ours(options)
    for name, row in {**found, "Rankine, all metrics": mine}.items():
        line = f"{row['total_ms']:10.1f} ms   R@1 {row['recall_at_1']:.4f}" if "total_ms" in row else row["why"]
        print(f"{name:28} {line}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "where": torch.cuda.get_device_name(), "n": options.n,
                       "dim": options.dim, "classes": options.classes, "k": options.k, "peers": found,
                       "rankine": mine}, file, indent=1)
            file.write("\n")
    theirs = found["torch matmul and topk, fp32"]
    if "total_ms" not in mine or "total_ms" not in theirs:
        print("nothing to compare: " + (mine.get("why") or theirs["why"]))
        return 1
    apart = {name: row["recall_at_1"] - mine["recall_at_1"] for name, row in found.items() if "recall_at_1" in row}
    wrong = [f"{name} {difference:+.4f}" for name, difference in apart.items() if abs(difference) > MOST_APART]
    if wrong:
        print(f"R@1 is not that of Rankine ({mine['recall_at_1']:.4f}): {', '.join(wrong)}")
        return 1
    print(f"{theirs['total_ms'] / mine['total_ms']:.2f} times as fast as torch in fp32")
    return 0


if __name__ == "__main__":
    sys.exit(main())
