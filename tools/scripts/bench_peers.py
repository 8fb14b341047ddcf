#!/usr/bin/env python3
"""Every loss beside the code people use for it, on this machine and in turn: forward and backward with both
matrix products, in milliseconds.

Peers are pytorch-metric-learning and the authors' own code. A virtual environment is made for PyTorch and
removed again (--venv DIR: this one is used, filled where something is missing, and kept). The authors' code is
cloned for the run at the commits below (--authors DIR: taken from DIR/<repository> instead). What cannot be had
is left out, with the reason.

  tools/scripts/bench_peers.py                                    all of it, 10 to 20 minutes
  tools/scripts/bench_peers.py --losses smooth_ap,pnp_o --n 384   a part
  tools/scripts/bench_peers.py --json results.json --append       in parts: measured again, a line is replaced
  tools/scripts/bench_peers.py --json results.json --table        print what is there, measure nothing
  tools/scripts/bench_peers.py --device cuda --python python3 --n 128,512,2048,8192     on a GPU, with a Python that has
                                                          torch and pytorch-metric-learning already

Goals, of the code compared with: 20 times as fast as O(N^3) code at N = 384; 5 times as fast as O(N^2) code, or
within 1.3 times our matrix products where these alone take a fifth of its time; and never slower.
"""
import argparse
import datetime
import json
import os
import platform
import select
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = ["torch", "pytorch-metric-learning==2.9.0", "h5py"]

REPOSITORIES = {  # name: (where, commit)
    "FastAP-metric-learning": ("kunhe", "ca85b2ab3f22460795d4306c8fa01c655d17027e"),
    "Smooth_AP": ("Andrew-Brown1", "59927ec4c59565bff209301d2c2b449ed1937806"),
    "PNPloss": ("interestingzhuo", "582ffabd254204d12e68b860fa81538d74ded878"),
    "blackbox-backprop": ("martius-lab", "0152a6df8c819580d800b052ef17f39bdb82eb98"),
    "RecallatK_surrogate": ("yash0307", "ed052029d258555df2f94dd82d6f7df60ef7cc6f"),
    "ROADMAP": ("elias-ramzi", "fed37d75f475f636542b2ccd1ffc0c3918498a57"),
    "research-ms-loss": ("MalongTech", "8db6c9ccb58acf1530444f40185215465603046c"),
    "Proxy-Anchor-CVPR2020": ("tjddus9597", "51db57031e38f75c03f69bbdfad1a3233afd9787"),
}

# Our loss; the peer (bench_peers_worker.py); the complexity of its code; its repository; our loss with exactly the
# same value, or why there is none.
PAIRS = [
    ("fastap", "pml FastAPLoss", 2, None, "fastap"),
    ("fastap", "authors FastAP", 2, "FastAP-metric-learning", "fastap"),
    ("rambo_recall", "authors RaMBO RecallLoss log", 2, "blackbox-backprop",
     "-: multiplies ranks by the rows, not by the row's length"),
    ("rambo_recall:weight=loglog", "authors RaMBO RecallLoss loglog", 2, "blackbox-backprop",
     "-: multiplies ranks by the rows, not by the row's length"),
    ("rambo_ap", "authors RaMBO MapLoss", 2, "blackbox-backprop", "-: its margin is random"),
    ("smooth_ap", "pml SmoothAPLoss", 3, None, "-: 2.9 is right only for as many classes as items a class"),
    ("smooth_ap", "authors Smooth-AP", 3, "Smooth_AP", "smooth_ap:compat=official"),
    ("pnp_o", "pml PNPLoss O", 3, None, "pnp_o:compat=official"),
    ("pnp_o", "authors PNP-O", 3, "PNPloss", "pnp_o:compat=official"),
    ("pnp_iu", "pml PNPLoss Iu", 3, None, "pnp_iu:compat=official"),
    ("pnp_iu", "authors PNP-I_u", 3, "PNPloss", "pnp_iu:compat=official"),
    ("pnp_ib", "pml PNPLoss Ib", 3, None, "pnp_ib:compat=official"),
    ("pnp_ib", "authors PNP-I_b", 3, "PNPloss", "pnp_ib:compat=official"),
    ("pnp_ds", "pml PNPLoss Ds", 3, None, "pnp_ds:compat=official"),
    ("pnp_ds", "authors PNP-D_s", 3, "PNPloss", "pnp_ds:compat=official"),
    ("pnp_dq", "pml PNPLoss Dq", 3, None, "pnp_dq:compat=official"),
    ("pnp_dq", "authors PNP-D_q", 3, "PNPloss", "pnp_dq:compat=official"),
    ("auc_bh", None, 0, None, "-"),
    ("auc_ba", None, 0, None, "-"),
    ("wilcoxon_bh", None, 0, None, "-"),
    ("triplet_bh", "pml TripletMarginLoss, BatchHardMiner", 2, None, "triplet_bh"),
    ("triplet_ba", "pml TripletMarginLoss", 3, None, "triplet_ba"),
    ("nsl", "pml NormalizedSoftmaxLoss", 2, None, "nsl"),
    ("contrastive", "pml ContrastiveLoss", 2, None, "contrastive"),
    ("histogram", "pml HistogramLoss", 2, None, "histogram"),
    ("recall_at_k", "authors Recall@k", 2, "RecallatK_surrogate", "recall_at_k:compat=official"),
    ("sup_ap", "authors ROADMAP", 3, "ROADMAP", "sup_ap:compat=official"),
    ("multi_similarity:mining=0", "pml MultiSimilarityLoss", 2, None, "multi_similarity:mining=0"),
    ("multi_similarity", "authors Multi-Similarity", 2, "research-ms-loss", "multi_similarity"),
    ("proxy_anchor", "pml ProxyAnchorLoss", 2, None, "proxy_anchor"),
    ("proxy_anchor", "authors Proxy-Anchor", 2, "Proxy-Anchor-CVPR2020", "proxy_anchor"),
]


def make_environment(folder):
    """The Python of a virtual environment in `folder` that has what the worker needs."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True,
                   stdout=sys.stderr)
    return python


def clone(name, folder):
    """A clone at its commit in `folder`/name, or None with the reason printed."""
    owner, commit = REPOSITORIES[name]
    into = os.path.join(folder, name)
    if os.path.isdir(into):
        return into
    environment = dict(os.environ, GIT_TERMINAL_PROMPT="0")
    if shutil.which("git") is None:
        print(f"left out: {owner}/{name}: git is not installed", file=sys.stderr)
        return None
    for command in (["git", "clone", "--quiet", f"https://github.com/{owner}/{name}", into],
                    ["git", "-C", into, "checkout", "--quiet", commit]):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["git failed"])[-1]
            print(f"left out: {owner}/{name}: {reason}", file=sys.stderr)
            shutil.rmtree(into, ignore_errors=True)
            return None
    return into


def commit_of(folder):
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"


class Worker:
    """The process with PyTorch: started when first asked, ended when it takes too long."""

    def __init__(self, python, options, authors):
        self.command = [python, os.path.join(HERE, "bench_peers_worker.py"), str(options.threads),
                        str(int(options.memory * 2**30)), authors, options.device]
        self.limit = options.limit
        self.process = None

    def ask(self, request):
        if self.process is None:
            environment = dict(os.environ, OMP_NUM_THREADS=self.command[2])
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True, env=environment)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], self.limit)
        line = self.process.stdout.readline() if ready else None
        if line:
            return json.loads(line)
        if not ready:
            self.close()
            return {"error": f"over {self.limit} s"}
        code = self.process.wait()
        self.close()
        return {"error": "out of memory" if code in (-9, 137) else f"ended with code {code}"}

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def program(options, name, arguments, result):
    """Runs one of ours; its JSON."""
    subprocess.run([os.path.join(options.bin, name), *arguments, "--threads", str(options.threads),
                    "--device", options.device, "--json", result], check=True, stdout=subprocess.DEVNULL)
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def summary(times):
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def goal(order, n, row):
    """What is asked of us against this peer, and whether it is so."""
    ratio = row["ratio"]
    if order == 3:
        return (">= 20", ratio >= 20) if n == 384 else (">= 1", ratio >= 1)
    if 5 * row["gemm_ms"] >= row["peer_ms"]["median"]:
        return (">= 5 or <= 1.3 GEMMs",
                ratio >= 5 or (row["ours_ms"]["median"] <= 1.3 * row["gemm_ms"] and ratio >= 1))
    return ">= 5", ratio >= 5


def measure(options, worker, pair, n, folder):
    ours, peer, order, repository, same = pair
    result = os.path.join(folder, "result.json")
    found = program(options, "bench",
                    ["loss", "--loss", ours, "--n", str(n), "--dim", str(options.dim), "--per-class",
                     str(options.per_class), "--repeats", str(options.repeats)], result)
    row = {"loss": ours, "n": n, "repeats": options.repeats,
           "ours_ms": {"median": found["total_ms"], "min": found["total_ms_min"],
                       "max": found["total_ms_max"]},
           "gemm_ms": found["gemm_ms"], "floor_ms": found["floor_ms"], "share": found["share"],
           "peak_bytes": found["peak_bytes"], "peer": peer}
    if peer is None:
        return row | {"note": "no public code"}
    if repository and not os.path.isdir(os.path.join(worker.command[4], repository)):
        return row | {"note": "the authors' code could not be had"}
    row["order"] = f"N^{order}"
    request = {"peer": peer, "n": n, "dim": options.dim, "per_class": options.per_class,
               "repeats": options.repeats}
    if n == min(options.n) and not same.startswith("-"):
        request["file"] = os.path.join(folder, "batch.h5")
    theirs = worker.ask(request)
    if "error" in theirs:
        return row | {"note": theirs["error"]}
    row["peer_ms"] = summary(theirs["times_ms"])
    row["ratio"] = row["peer_ms"]["median"] / row["ours_ms"]["median"]
    row["goal"], row["met"] = goal(order, n, row)
    if same.startswith("-"):
        row["value"] = "not comparable" + same[1:]
    elif "loss" in theirs:
        loss = program(options, "probe", ["--loss", same, "--in", request["file"]], result)["loss"]
        apart = abs(loss - theirs["loss"]) / abs(loss)
        row["value"] = f"that of {same} to {apart:.0e}"
        if apart > 1e-3:
            row["note"] = f"another value: {theirs['loss']:.6g}, ours {loss:.6g}"
    return row


def print_table(results):
    machine = results["machine"]
    print(f"{machine.get('gpu') or machine['cpu']}, {machine['threads']} threads, {results['date']}, commit "
          f"{results['commit'][:12]}, PyTorch {results['torch']}, D = {results['dim']}, "
          f"{results['per_class']} a class, median of {results['repeats']}, ms\n")
    print("| loss | beside | code | N | ours | GEMMs | share of floor | theirs | times as fast | goal |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in results["rows"]:
        theirs, ratio, verdict = "", "", row.get("note", "")
        if "peer_ms" in row:
            theirs, ratio = f"{row['peer_ms']['median']:.2f}", f"{row['ratio']:.1f}"
            verdict = f"{row['goal']}: {'met' if row['met'] else 'MISSED'}" + (
                f"; {row['note']}" if "note" in row else "")
        order = f"O({row['order']})" if "order" in row else ""
        print(f"| `{row['loss']}` | {row['peer'] or ''} | {order} | {row['n']} | "
              f"{row['ours_ms']['median']:.2f} | {row['gemm_ms']:.2f} | {share_text(row)} | "
              f"{theirs} | {ratio} | {verdict} |")


def share_text(row):
    """The share of its floor; "-" where the loss skips products with zeros, all of which the floor counts."""
    return "-" if row["share"] is None else f"{100 * row['share']:.0f} %"


def print_summary(results):
    """A line for each loss and peer: ours / theirs = times as fast, marked where a goal is missed, and the
    share of its floor that our loss reaches at each N."""
    sizes = sorted({row["n"] for row in results["rows"]})
    print("\n| loss | beside | " + " | ".join(f"N = {n}" for n in sizes) + " | share of floor |")
    print("|---|---|" + "---|" * len(sizes) + "---|")
    lines = {}
    for row in results["rows"]:
        cell = f"{row['ours_ms']['median']:.2f}"
        if "peer_ms" in row:
            theirs, ratio = row["peer_ms"]["median"], row["ratio"]
            cell += (f" / {theirs:.{1 if theirs < 100 else 0}f} = "
                     f"{ratio:.{1 if ratio < 10 else 0}f}{'' if row['met'] else ' (goal missed)'}")
        elif row["peer"]:
            cell += f" / {row['note']}"
        lines.setdefault((row["loss"], row["peer"] or "no public code"), {})[row["n"]] = (
            cell, share_text(row))
    for (loss, peer), cells in lines.items():
        shares = ", ".join(cells[n][1] if n in cells else "-" for n in sizes)
        print(f"| `{loss}` | {peer} | " +
              " | ".join(cells[n][0] if n in cells else "" for n in sizes) + f" | {shares} |")
    for n in sizes:
        alone = [row["gemm_ms"] for row in results["rows"] if row["n"] == n and
                 not row["loss"].startswith(("nsl", "proxy"))]
        print(f"\nN = {n}: both matrix products alone {statistics.median(alone):.2f} ms"
              " (median of the lines without proxies)")


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def gpu_name():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip().split("\n")[0]


def measure_all(options, pairs, folder):
    authors = options.authors or os.path.join(folder, "authors")
    python = options.python or make_environment(options.venv or os.path.join(folder, "venv"))
    needed = {pair[3] for pair in pairs if pair[3]}
    clones = {name: clone(name, authors) for name in sorted(needed)}
    versions = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=True,
                              capture_output=True, text=True).stdout.strip()
    results = {"date": datetime.date.today().isoformat(), "commit": commit_of(HERE),
               "torch": versions, "dim": options.dim, "per_class": options.per_class,
               "repeats": options.repeats,
               "machine": {"cpu": cpu_name(), "gpu": gpu_name() if options.device == "cuda" else None,
                           "cores": os.cpu_count(), "threads": options.threads},
               "authors": {name: commit_of(path) for name, path in clones.items() if path},
               "rows": []}
    worker = Worker(python, options, authors)
    try:
        for pair in pairs:
            for n in options.n:
                row = measure(options, worker, pair, n, folder)
                results["rows"].append(row)
                if options.json:
                    save(options.json, append(options.kept, results))
                print(f"{row['loss']} {n}: {row['ours_ms']['median']:.2f} ms, {row['peer']}: "
                      f"{row.get('peer_ms', {}).get('median', row.get('note'))}", file=sys.stderr)
    finally:
        worker.close()
    return results


def append(old, new):
    """`new` with the lines of `old` that were not measured again, in the order of PAIRS."""
    key = lambda row: (row["loss"], row["peer"], row["n"])
    order = {(pair[0], pair[1]): i for i, pair in enumerate(PAIRS)}
    rows = {key(row): row for row in old["rows"]} | {key(row): row for row in new["rows"]}
    return new | {"authors": old["authors"] | new["authors"],
                  "rows": sorted(rows.values(),
                                 key=lambda row: (order[row["loss"], row["peer"]], row["n"]))}


def save(path, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="of both sides (cpu)")
    parser.add_argument("--bin", default="build/bin", help="folder with bench and probe (build/bin)")
    parser.add_argument("--losses", default="", help="names, comma separated (all)")
    parser.add_argument("--n", default="128,384,1024", help="batch sizes (128,384,1024)")
    parser.add_argument("--dim", type=int, default=512, help="dimensions (512)")
    parser.add_argument("--per-class", type=int, default=4, help="items a class (4)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs (7)")
    parser.add_argument("--memory", type=float, default=8, help="GiB a peer may take (8)")
    parser.add_argument("--limit", type=int, default=300, help="seconds a peer may take for one line (300)")
    parser.add_argument("--venv", help="virtual environment to use and keep")
    parser.add_argument("--python", help="Python to use as it is, instead of a virtual environment")
    parser.add_argument("--authors", help="folder with clones of the authors' repositories")
    parser.add_argument("--json", help="file to write the results to")
    parser.add_argument("--append", action="store_true", help="keep the other lines of that file")
    parser.add_argument("--table", action="store_true", help="only print the table of that file")
    options = parser.parse_args()
    if (options.append or options.table) and not options.json:
        parser.error("--append and --table need --json FILE")
    if options.table:
        with open(options.json, encoding="utf-8") as file:
            results = json.load(file)
        print_table(results)
        print_summary(results)
        return
    options.n = [int(n) for n in options.n.split(",")]
    wanted = options.losses.split(",") if options.losses else []
    known = {pair[0].split(":")[0] for pair in PAIRS}
    if not set(wanted) <= known:
        parser.error(f"no such loss: {', '.join(sorted(set(wanted) - known))}")
    pairs = [pair for pair in PAIRS if not wanted or pair[0].split(":")[0] in wanted]
    options.kept = {"authors": {}, "rows": []}
    if options.append and os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            options.kept = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        results = append(options.kept, measure_all(options, pairs, folder))
    print_table(results)
    print_summary(results)


if __name__ == "__main__":
    main()
