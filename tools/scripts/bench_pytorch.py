#!/usr/bin/env python3
"""A training step in PyTorch beside `bench step`, in turn on this machine.

Needs torch and torchvision in the Python that runs it (a throw-away virtual environment will do); nothing
else in the tree does. Both sides: the same batch, image size and batch-norm mode, forward, backward, Adam.
PyTorch runs in channels_last, from a fixed gradient of the unit-length embeddings; ours has its loss as well.

  tools/scripts/bench_pytorch.py --batch 16 --bn train,frozen --modes eager,compile    fp32, CPU
  tools/scripts/bench_pytorch.py --device cuda --precision fp16 --batch 64,128,256 --bn train,frozen \\
    --modes eager,graphs,compile,compile-graphs --rounds 1 --json step.json

On a GPU: fp16 and bf16 by autocast (fp16 with a gradient scaler), tf32 in convolutions and matrix products, fused
Adam, cudnn.benchmark; 20 steps to warm up, then the median of --repeats between CUDA events, images rotated
over 4 buffers, none of it read back. The modes: eager; graphs: forward and backward each one CUDA graph
(torch.cuda.make_graphed_callables); compile: torch.compile; compile-graphs: its mode reduce-overhead.
What cannot be had is left out, with the reason. Of a row, ratio is their time over ours from one result on the host to
the next, ratio_card over ours between events, as theirs is. The last line has the ratios of each batch size and batch-norm mode;
exit code 1 where one of them has no time of Rankine's, or none of PyTorch's.
"""
import argparse
import contextlib
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torchvision

MODES = ["eager", "graphs", "compile", "compile-graphs"]
MODES_ON_CPU = ["eager", "compile"]
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
WARM_UP = 20


def make_network(options, bn):
    # GoogLeNet and Inception as we build them: without auxiliary classifiers and dropout.
    branches = {} if options.arch.startswith("resnet") else {"aux_logits": False, "init_weights": False}
    network = getattr(torchvision.models, options.arch)(weights=None, **branches)
    if branches:
        network.dropout = torch.nn.Identity()
    network.fc = torch.nn.Linear(network.fc.in_features, 512)
    network = network.to(options.device, memory_format=torch.channels_last).train()
    if bn == "frozen":
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eval()
    return network


def step_on_cpu(options, batch, bn, mode):
    torch.set_num_threads(options.threads)
    network = make_network(options, bn)
    call = torch.compile(network) if mode == "compile" else network
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)
    size = options.image_size
    images = torch.randn(batch, 3, size, size).to(memory_format=torch.channels_last)
    gradient = torch.randn(batch, 512) * 1e-3
    times = []
    for _ in range(options.repeats + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.normalize(call(images)).backward(gradient)
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def step_on_cuda(options, batch, bn, mode):
    torch.backends.cudnn.benchmark = True
    tf32 = options.precision != "fp32"
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    network = make_network(options, bn)
    size = options.image_size
    buffers = [torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
               for _ in range(4)]
    gradient = torch.randn(batch, 512, device="cuda") * 1e-3
    kind = TYPES.get(options.precision)

    def precision():
        # Without autocast's cache: a replayed graph must cast the changed weights again.
        return (torch.autocast("cuda", dtype=kind, cache_enabled=mode != "graphs") if kind
                else contextlib.nullcontext())

    call = network
    if mode == "graphs":
        with precision():
            call = torch.cuda.make_graphed_callables(network, (buffers[0].clone(),))
    elif mode == "compile":
        call = torch.compile(network)
    elif mode == "compile-graphs":
        call = torch.compile(network, mode="reduce-overhead")
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5, fused=True)
    scaler = torch.amp.GradScaler("cuda", enabled=options.precision == "fp16")

    def step(images):
        optimizer.zero_grad(set_to_none=mode != "graphs")
        with precision():
            embeddings = call(images)
        value = (torch.nn.functional.normalize(embeddings.float()) * gradient).sum()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()

    events = [torch.cuda.Event(enable_timing=True) for _ in range(options.repeats + 1)]
    for i in range(WARM_UP):
        step(buffers[i % 4])
    for i, event in enumerate(events):
        event.record()
        if i < options.repeats:
            step(buffers[i % 4])
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in itertools.pairwise(events))


def pytorch_step_ms(options, batch, bn, mode):
    """Milliseconds, or why there are none: a compiler may raise anything, and the others are measured all the same."""
    try:
        return (step_on_cpu if options.device == "cpu" else step_on_cuda)(options, batch, bn, mode), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    finally:
        with contextlib.suppress(Exception):  # raised if the GPU has failed
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
            if mode.startswith("compile"):
                torch.compiler.reset()


def rankine_step_ms(options, batch, bn):
    """What `bench step` says of its step, with its notes; step_ms is None where it has none, and then there is a why.
    What it says while it tunes is printed as it comes, so that it is known should that be cut off."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "step.json")
        command = [options.bench, "step", "--arch", options.arch, "--batch", str(batch),
                   "--image-size", str(options.image_size), "--bn", bn, "--threads",
                   str(options.threads), "--repeats", str(options.repeats), "--json", result]
        if options.device == "cuda":
            command += ["--device", "cuda", "--precision", options.precision]
        limit = options.limit
        if options.tune:
            command += ["--tune", os.path.join(
                options.tune, f"plans-{options.arch}-{options.precision}-{bn}-{batch}.txt")]
        if options.tune_seconds:
            command += ["--tune-seconds", str(options.tune_seconds)]
            limit += options.tune_seconds
        sys.stdout.flush()
        try:
            done = subprocess.run(command, stdout=None if options.tune else subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"step_ms": None, "why": f"bench step was not through after {limit} s"}
        said = done.stderr.strip().splitlines()
        if done.returncode != 0:
            return {"step_ms": None, "why": (said or ["no word"])[-1]}
        with open(result, encoding="utf-8") as file:
            return json.load(file) | {"notes": said}


def shown(milliseconds, why):
    return f"{milliseconds:8.2f} ms" if milliseconds else f"none ({why})"


def circumstances(ours):
    """Of a result of `bench step`, what a time is worth nothing without."""
    text = ""
    if plans := ours.get("plans"):
        text += f", {plans['taken']} of the {plans['named']} engines in {os.path.basename(plans['file'])} taken"
    if ours.get("graph") == "on" and ours.get("captured") is False:
        text += ", without a CUDA graph"
    return text


def measure(options, batch, bn):
    """Rows of one batch size and batch-norm mode: ours and each mode of theirs, in turn."""
    rounds = {mode: [] for mode in ["rankine"] + options.modes}
    why, ours, on_card = {}, {}, []
    for _ in range(options.rounds):
        for mode in options.modes:
            took, why[mode] = pytorch_step_ms(options, batch, bn, mode)
            if took:
                rounds[mode].append(took)
        ours = rankine_step_ms(options, batch, bn)
        if ours["step_ms"]:
            rounds["rankine"].append(ours["step_ms"])
        if ours.get("card_ms"):
            on_card.append(ours["card_ms"])
    medians = {mode: statistics.median(times) if times else None for mode, times in rounds.items()}
    mine = medians["rankine"]
    print(f"batch {batch}, batch norm {bn}: Rankine {shown(mine, ours.get('why'))}{circumstances(ours)}", flush=True)
    for note in ours.get("notes", []):
        print(f"  Rankine: {note}", flush=True)
    rows = []
    for mode in options.modes:
        theirs = medians[mode]
        row = {"batch": batch, "bn": bn, "precision": options.precision, "mode": mode,
               "pytorch_ms": theirs, "rankine_ms": mine, "notes": ours.get("notes", []), "rankine": ours}
        line = f"  PyTorch {mode:14} {shown(theirs, why[mode])}"
        if theirs and mine:
            row |= {"ratio": theirs / mine, "pytorch_images_per_second": 1e3 * batch / theirs,
                    "rankine_images_per_second": 1e3 * batch / mine}
            line += f"   ratio {row['ratio']:.2f}"
            if on_card:
                row["ratio_card"] = theirs / statistics.median(on_card)
                line += f" ({row['ratio_card']:.2f} by the card's clock)"
            line += (f"   images/s {row['pytorch_images_per_second']:.0f} and "
                     f"{row['rankine_images_per_second']:.0f}")
        elif not theirs:
            row["why"] = why[mode]
        print(line, flush=True)
        rows.append(row)
    return rows


def conclusion(rows):
    """The ratios of each batch size and batch-norm mode in a line, and whether there are any of all of them."""
    groups = {}
    for row in rows:
        groups.setdefault(f"{row['bn']} {row['batch']}", []).append(row)
    ratios, missing = [], []
    for name, group in groups.items():
        of_modes = [f"{row['ratio']:.2f} {row['mode']}" for row in group if "ratio" in row]
        if of_modes:
            ratios.append(f"{name}: {', '.join(of_modes)}")
        elif group[0]["rankine_ms"]:
            missing.append(f"{name} (PyTorch: {group[0]['why'][:60]})")
        else:
            missing.append(f"{name} (Rankine: {group[0]['rankine']['why'][:60]})")
    if missing:
        ratios.insert(0, f"{len(missing)} of {len(groups)} did not run: {', '.join(missing)}")
    return "; ".join(ratios), not missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/bin/bench")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", help="cuda: fp32, tf32, fp16 (the default) or bf16",
                        choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--modes", default="eager", help="of PyTorch, comma separated: " + ", ".join(MODES))
    parser.add_argument("--arch", default="resnet50", choices=["resnet18", "resnet50", "googlenet", "inception_v3"])
    parser.add_argument("--batch", default="16", help="sizes, comma separated")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--bn", default="train", help="train, frozen or both, comma separated")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, help="steps of which the median is taken (5; on a GPU 50)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tune", metavar="FOLDER", help="cuda: Rankine times its engines first, as cudnn.benchmark "
                        "does for PyTorch, and leaves its choice here")
    parser.add_argument("--tune-seconds", type=int, metavar="N", help="with --tune: it begins nothing further after N "
                        "seconds; the next call goes on with what is left")
    parser.add_argument("--limit", type=int, default=600, metavar="N", help="seconds for a run of bench (600) "
                        "beside --tune-seconds; one that takes longer is ended")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    options.precision = options.precision or ("fp16" if options.device == "cuda" else "fp32")
    options.repeats = options.repeats or (50 if options.device == "cuda" else 5)
    if not set(options.modes) <= set(MODES) or not set(options.bn.split(",")) <= {"train", "frozen"}:
        parser.error("--modes or --bn: no such value")
    if options.device == "cpu" and (options.precision != "fp32" or not set(options.modes) <= set(MODES_ON_CPU)):
        parser.error(f"on the CPU --precision is fp32, and --modes are of {', '.join(MODES_ON_CPU)}")
    if options.tune_seconds and not options.tune:
        parser.error("--tune-seconds is for --tune FOLDER")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this PyTorch finds no GPU")
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} threads"
    print(f"PyTorch {torch.__version__}, {options.arch}, {options.precision}, {where}")
    rows = []
    for bn in options.bn.split(","):
        for batch in options.batch.split(","):
            rows += measure(options, int(batch), bn)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                               "where": where, "arch": options.arch, "rows": rows}, file, indent=1)
                    file.write("\n")
    said, complete = conclusion(rows)
    print(said)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
